// base.c: see base.h. An arena is a chain of blocks; a map is a hash table over a list; both are as plain as they can be.
#include "base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- failing -----------------------------------------------------------------------------------------------------------

_Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "mlc: error: out of memory (%zu bytes wanted)\n", bytes);
    exit(1);
}

_Noreturn void bug(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "mlc: internal error at %s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nmlc: this is a fault of mlc, not of the model; please report it with the model\n");
    va_end(args);
    exit(3);
}

bool size_mul(int64_t a, int64_t b, int64_t *result)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, result);
}

bool size_add(int64_t a, int64_t b, int64_t *result)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, result);
}

// --- Arena -------------------------------------------------------------------------------------------------------------

enum { BLOCK = 64 * 1024, ALIGN = 16 };

typedef struct Block { struct Block *next; size_t used, room; _Alignas(ALIGN) char bytes[]; } Block;

struct Arena { Block *first; };

Arena *arena_new(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        out_of_memory(sizeof *arena);
    return arena;
}

void arena_free(Arena *arena)
{
    if (arena == NULL)
        return;
    for (Block *b = arena->first, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

static Block *block_new(Arena *arena, size_t bytes)
{
    size_t room = bytes > BLOCK ? bytes : BLOCK;
    Block *b = calloc(1, sizeof *b + room);
    if (b == NULL)
        out_of_memory(room);
    b->room = room;
    // A block made for one large thing goes behind the one in use, which still has room for small ones.
    if (arena->first != NULL && bytes > BLOCK) {
        b->next = arena->first->next;
        arena->first->next = b;
    } else {
        b->next = arena->first;
        arena->first = b;
    }
    return b;
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        out_of_memory(bytes);
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    Block *b = arena->first;
    if (b == NULL || b->room - b->used < bytes)
        b = block_new(arena, bytes);
    void *at = b->bytes + b->used;
    b->used += bytes;
    return at;
}

void *arena_alloc_array(Arena *arena, size_t element, int64_t n)
{
    if (n < 0 || (uint64_t)n > SIZE_MAX / 2 / (element ? element : 1))
        out_of_memory(SIZE_MAX);
    return arena_alloc(arena, element * (size_t)n);
}

void *arena_copy(Arena *arena, const void *from, size_t bytes)
{
    void *to = arena_alloc(arena, bytes);
    if (bytes > 0)
        memcpy(to, from, bytes);
    return to;
}

char *arena_string(Arena *arena, const char *from, size_t length)
{
    char *to = arena_alloc(arena, length + 1);
    if (length > 0)
        memcpy(to, from, length);
    return to;
}

char *arena_vprintf(Arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    CHECK(length >= 0);
    char *to = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(to, (size_t)length + 1, format, args);
    return to;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *to = arena_vprintf(arena, format, args);
    va_end(args);
    return to;
}

void list_grow(Arena *arena, void **at, int count, int *room, size_t element)
{
    if (count < *room)
        return;
    CHECK(*room < 1 << 29);
    int larger = *room ? 2 * *room : 8;
    void *to = arena_alloc_array(arena, element, larger);
    if (count > 0)
        memcpy(to, *at, (size_t)count * element);
    *at = to;
    *room = larger;
}

// --- Map ---------------------------------------------------------------------------------------------------------------

typedef struct Entry { const char *key; void *value; uint64_t hash; int next; } Entry;

struct Map {
    Arena *arena;
    LIST(Entry) entries;
    int *heads, slots;                                  // heads[hash % slots]: index of the first entry + 1, 0 for none
};

static uint64_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u;                   // FNV-1a
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return h;
}

Map *map_new(Arena *arena)
{
    Map *map = NEW(arena, Map);
    map->arena = arena;
    map->slots = 16;
    map->heads = NEW_ARRAY(arena, int, map->slots);
    return map;
}

static Entry *map_find(const Map *map, const char *key, uint64_t hash)
{
    for (int i = map->heads[hash % (uint64_t)map->slots]; i != 0; i = map->entries.at[i - 1].next) {
        Entry *e = &map->entries.at[i - 1];
        if (e->hash == hash && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

static void map_link(Map *map, int i)
{
    int *head = &map->heads[map->entries.at[i].hash % (uint64_t)map->slots];
    map->entries.at[i].next = *head;
    *head = i + 1;
}

static void map_widen(Map *map)
{
    map->slots *= 4;
    map->heads = NEW_ARRAY(map->arena, int, map->slots);
    for (int i = 0; i < map->entries.count; i++)
        map_link(map, i);
}

void map_set(Map *map, const char *key, void *value)
{
    size_t length = strlen(key);
    uint64_t hash = hash_bytes(key, length);
    Entry *e = map_find(map, key, hash);
    if (e != NULL) {
        e->value = value;
        return;
    }
    LIST_ADD(map->arena, map->entries, ((Entry){arena_string(map->arena, key, length), value, hash, 0}));
    if (map->entries.count > 2 * map->slots)
        map_widen(map);
    else
        map_link(map, map->entries.count - 1);
}

void *map_get(const Map *map, const char *key)
{
    Entry *e = map_find(map, key, hash_bytes(key, strlen(key)));
    return e != NULL ? e->value : NULL;
}

int         map_count(const Map *map)        { return map->entries.count; }
const char *map_key(const Map *map, int i)   { return map->entries.at[i].key; }
void       *map_value(const Map *map, int i) { return map->entries.at[i].value; }

// --- PointerMap --------------------------------------------------------------------------------------------------------

typedef struct PointerEntry { const void *key; void *value; } PointerEntry;

struct PointerMap { Arena *arena; PointerEntry *entry; int count, room; };      // open addressing, room a power of two

PointerMap *pointer_map_new(Arena *arena)
{
    PointerMap *map = NEW(arena, PointerMap);
    map->arena = arena;
    map->room = 32;
    map->entry = NEW_ARRAY(arena, PointerEntry, map->room);
    return map;
}

// Where the key is, or would be.
static PointerEntry *pointer_place(const PointerMap *map, const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    for (int i = (int)(hash >> 33) & (map->room - 1);; i = (i + 1) & (map->room - 1))
        if (map->entry[i].key == key || map->entry[i].key == NULL)
            return &map->entry[i];
}

static void pointer_map_widen(PointerMap *map)
{
    PointerEntry *old = map->entry;
    int room = map->room;
    map->room *= 4;
    map->entry = NEW_ARRAY(map->arena, PointerEntry, map->room);
    for (int i = 0; i < room; i++)
        if (old[i].key != NULL)
            *pointer_place(map, old[i].key) = old[i];
}

void pointer_map_set(PointerMap *map, const void *key, void *value)
{
    CHECK(key != NULL && value != NULL);
    if (2 * map->count >= map->room)
        pointer_map_widen(map);
    PointerEntry *entry = pointer_place(map, key);
    map->count += entry->key == NULL;
    *entry = (PointerEntry){key, value};
}

void *pointer_map_get(const PointerMap *map, const void *key) { return pointer_place(map, key)->value; }

// --- Names -------------------------------------------------------------------------------------------------------------

struct Names { Arena *arena; Map *map; };

Names *names_new(Arena *arena)
{
    Names *names = NEW(arena, Names);
    names->arena = arena;
    names->map = map_new(arena);
    return names;
}

const char *name_intern(Names *names, const char *text, size_t length)
{
    char *key = arena_string(names->arena, text, length);
    void *known = map_get(names->map, key);
    if (known != NULL)
        return known;
    map_set(names->map, key, key);
    return key;
}

enum { LONGEST = 64 };

// Damerau-Levenshtein distance (neighbours swapped count once) of two words of at most LONGEST letters.
static int distance(const char *a, int na, const char *b, int nb)
{
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= na; i++)
        for (int j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[na][nb];
}

// A word that merely goes on is near too: conv2d and conv, accuracy and acc.
static bool starts_with(const char *a, size_t na, const char *b, size_t nb)
{
    size_t n = na < nb ? na : nb;
    return n >= 3 && memcmp(a, b, n) == 0;
}

const char *name_nearest(const char *word, const char *const *candidates, int count)
{
    size_t length = strlen(word);
    if (length > LONGEST)
        return NULL;
    const char *best = NULL;
    int least = (int)length / 3 + 1;
    for (int i = 0; i < count; i++) {
        size_t n = strlen(candidates[i]);
        if (n > LONGEST)
            continue;
        int d = distance(word, (int)length, candidates[i], (int)n);
        if (d >= least && starts_with(word, length, candidates[i], n))
            d = least;
        if (d < least || (d == least && best == NULL)) {
            best = candidates[i];
            least = d;
        }
    }
    return best;
}

// --- Text --------------------------------------------------------------------------------------------------------------

void text_put(Text *text, const char *bytes, size_t length)
{
    if (text->length + length + 1 > text->room) {
        size_t room = 2 * (text->length + length + 1) + 256;
        char *to = arena_alloc(text->arena, room);
        if (text->length > 0)
            memcpy(to, text->at, text->length);
        text->at = to;
        text->room = room;
    }
    if (length > 0)
        memcpy(text->at + text->length, bytes, length);
    text->length += length;
    text->at[text->length] = 0;
}

void text_vadd(Text *text, const char *format, va_list args)
{
    char *s = arena_vprintf(text->arena, format, args);
    text_put(text, s, strlen(s));
}

void text_add(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vadd(text, format, args);
    va_end(args);
}

void text_pad(Text *text, size_t column)
{
    size_t start = text->length;
    while (start > 0 && text->at[start - 1] != '\n')
        start--;
    while (text->length - start < column)
        text_put(text, " ", 1);
}
