// base.h: memory, names and text, as every part of the compiler uses them.
//
// Memory belongs to an Arena, which has the lifetime of a compilation, a graph or a pass; nothing is freed one by one.
// Running out of memory ends the compiler in one place (out_of_memory), so callers need no check.
// Names are interned: two equal names are the same pointer. Text is grown in a Text and handed over as a string.
#ifndef MLC_BASE_H
#define MLC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

// --- sizes (base.c): the only arithmetic on sizes that come from input; each fails on overflow -------------------------

bool size_mul(int64_t a, int64_t b, int64_t *result);   // false if a * b does not fit, or an operand is negative
bool size_add(int64_t a, int64_t b, int64_t *result);

// --- Arena -------------------------------------------------------------------------------------------------------------

typedef struct Arena Arena;

Arena *arena_new(void);
void   arena_free(Arena *arena);                        // everything in it at once; NULL is allowed
void  *arena_alloc(Arena *arena, size_t bytes);         // zeroed, aligned to 16
void  *arena_copy(Arena *arena, const void *from, size_t bytes);
char  *arena_string(Arena *arena, const char *from, size_t length);     // with a final 0
char  *arena_printf(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char  *arena_vprintf(Arena *arena, const char *format, va_list args);

#define NEW(arena, Type)           ((Type *)arena_alloc((arena), sizeof(Type)))
#define NEW_ARRAY(arena, Type, n)  ((Type *)arena_alloc_array((arena), sizeof(Type), (n)))
void *arena_alloc_array(Arena *arena, size_t element, int64_t n);       // n < 0 or too many: out_of_memory

// A growing array in an arena: `LIST(Node *) nodes;` then LIST_ADD(arena, nodes, n). Old copies stay in the arena.
#define LIST(Type) struct { Type *at; int count, room; }
#define LIST_ADD(arena, list, value) \
    (list_grow((arena), (void **)&(list).at, (list).count, &(list).room, sizeof(*(list).at)), \
     (list).at[(list).count++] = (value))
void list_grow(Arena *arena, void **at, int count, int *room, size_t element);

_Noreturn void out_of_memory(size_t bytes);             // message on stderr, exit code 1
_Noreturn void bug(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);     // our fault, exit code 3
#define BUG(...)          bug(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition)  ((condition) ? (void)0 : BUG("%s does not hold", #condition))

// --- Names and maps ----------------------------------------------------------------------------------------------------

typedef struct Map Map;                                 // from strings to pointers, insertion order kept

Map  *map_new(Arena *arena);
void  map_set(Map *map, const char *key, void *value);  // the key is copied; an existing value is replaced
void *map_get(const Map *map, const char *key);         // NULL if absent
int   map_count(const Map *map);
const char *map_key(const Map *map, int i);             // 0 <= i < count, in the order of insertion
void *map_value(const Map *map, int i);

typedef struct PointerMap PointerMap;                   // from pointers to pointers

PointerMap *pointer_map_new(Arena *arena);
void  pointer_map_set(PointerMap *map, const void *key, void *value);   // key and value not NULL; an existing value is replaced
void *pointer_map_get(const PointerMap *map, const void *key);          // NULL if absent

typedef struct Names Names;                             // interned strings
Names *names_new(Arena *arena);
const char *name_intern(Names *names, const char *text, size_t length);

// The entry of `candidates` nearest to `word` (Damerau-Levenshtein, at most a third of the length away), or NULL.
const char *name_nearest(const char *word, const char *const *candidates, int count);

// --- Text --------------------------------------------------------------------------------------------------------------

typedef struct Text { Arena *arena; char *at; size_t length, room; } Text;      // always 0-terminated once written to

void text_add(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_vadd(Text *text, const char *format, va_list args);
void text_put(Text *text, const char *bytes, size_t length);
void text_pad(Text *text, size_t column);               // blanks up to a column of the present line

#endif
