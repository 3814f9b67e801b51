// options.c: the command line to a Command, by the rows of options.def.
//
// Words of an @file are read as if they stood in its place. A mistake names the nearest option or verb that there is, and an
// option that belongs to other verbs says to which.
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 65536, AT_DEPTH = 8, NAMES_MOST = 128, COUNT_MOST = 1 << 30 };

const VerbDef verb_rows[] = {
#define VERB(name, operands, least, most, brief, text, example) {#name, operands, least, most, brief, text, example, verb_##name},
#include "options.def"
};

const OptionDef option_rows[] = {
#define OPTION(field, letter, word, kind, argument, verbs, initial, brief) \
    {letter, word, OPTION_##kind, argument, verbs, initial, brief, offsetof(Command, field)},
#include "options.def"
};

const EmitDef emit_rows[] = {
#define EMIT(name, needs, file, text, brief) {#name, NEEDS_##needs, file, text, brief},
#include "options.def"
};

const TargetDef target_rows[] = {
#define TARGET(name, machine, flags, compiler, brief) {#name, machine, flags, compiler, brief},
#include "options.def"
};

static const char *const later_verbs[] = {
#define LATER(name) #name,
#include "options.def"
};

const int verb_count = COUNT(verb_rows), option_count = COUNT(option_rows), emit_count = COUNT(emit_rows),
          target_count = COUNT(target_rows);

const VerbDef *verb_find(const char *name)
{
    for (int i = 0; i < verb_count; i++)
        if (strcmp(verb_rows[i].name, name) == 0)
            return &verb_rows[i];
    return NULL;
}

const TargetDef *target_find(const char *name)
{
    for (int i = 0; i < target_count; i++)
        if (strcmp(target_rows[i].name, name) == 0)
            return &target_rows[i];
    return NULL;
}

bool option_goes_with(const OptionDef *option, const VerbDef *verb)
{
    const char *word = option->verbs;
    size_t length = verb != NULL ? strlen(verb->name) : 0;
    if (strcmp(option->verbs, " * ") == 0)
        return true;
    while (length > 0 && (word = strstr(word, verb->name)) != NULL) {
        if (word[-1] == ' ' && word[length] == ' ')
            return true;
        word += length;
    }
    return false;
}

// --- The words -------------------------------------------------------------------------------------------------------

typedef struct Words { Command *command; LIST(const char *) at; } Words;

static bool add_words(Words *words, const char *word, int depth);

// Blanks separate; quotes and \ keep what follows together, as a shell would.
static bool add_text(Words *words, const char *text, int length, int depth)
{
    Arena *arena = words->command->cx.arena;
    char *word = arena_alloc(arena, (size_t)length + 1);
    int n = 0, begun = 0;
    char quote = 0;
    for (int i = 0; i <= length; i++) {
        char c = i < length ? text[i] : '\n';
        bool blank = c == ' ' || (c >= '\t' && c <= '\r');
        if (blank && (quote == 0 || i == length)) {
            if (begun && !add_words(words, arena_string(arena, word, (size_t)n), depth + 1))
                return false;
            n = begun = 0;
            continue;
        }
        begun = 1;
        if (c == quote && quote != 0)
            quote = 0;
        else if (quote == 0 && (c == '"' || c == '\''))
            quote = c;
        else
            word[n++] = c == '\\' && quote != '\'' && i + 1 < length ? text[++i] : c;
    }
    return true;
}

static bool add_words(Words *words, const char *word, int depth)
{
    Command *command = words->command;
    if (word[0] != '@' || word[1] == 0) {
        LIST_ADD(command->cx.arena, words->at, word);
        if (words->at.count > WORDS_MOST)
            return fail_usage(command, MESSAGE_E0602, word), false;
        return true;
    }
    const char *bytes, *why;
    int length;
    if (depth > AT_DEPTH)
        return fail_usage(command, MESSAGE_E0603, word, AT_DEPTH), false;
    if (!file_load(command, word + 1, &bytes, &length, &why))
        return fail_usage(command, MESSAGE_E0701, word + 1, why), false;
    return add_text(words, bytes, length, depth);
}

// --- Options ---------------------------------------------------------------------------------------------------------

static Option *option_of(Command *command, const OptionDef *def) { return (Option *)((char *)command + def->at); }

static const char *spelling(const OptionDef *def) { return *def->word ? def->word : def->letter; }

static bool takes_argument(const OptionDef *def) { return def->kind != OPTION_FLAG; }

// The option that a word begins; *argument gets what is stuck to it, or NULL.
static const OptionDef *option_match(const char *word, const char **argument)
{
    size_t name = strcspn(word, "=");
    *argument = NULL;
    for (int i = 0; i < option_count; i++) {
        const OptionDef *def = &option_rows[i];
        if (strcmp(def->letter, word) == 0 && def->kind != OPTION_PREFIX)
            return def;
        if (*def->word && strlen(def->word) == name && strncmp(def->word, word, name) == 0) {
            *argument = word[name] == '=' ? word + name + 1 : NULL;
            return def;
        }
    }
    for (int i = 0; i < option_count; i++) {            // -oFILE, -DNAME=VALUE, -Wname
        const OptionDef *def = &option_rows[i];
        if (strlen(def->letter) == 2 && takes_argument(def) && strncmp(word, def->letter, 2) == 0 && word[2] != 0) {
            *argument = word + 2;
            return def;
        }
    }
    return NULL;
}

static bool unknown_option(Command *command, const char *word)
{
    const char *names[NAMES_MOST];
    int n = 0;
    char *name = arena_string(command->cx.arena, word, strcspn(word, "="));
    for (int i = 0; i < option_count && n < NAMES_MOST; i++)
        if (option_goes_with(&option_rows[i], command->verb))
            names[n++] = spelling(&option_rows[i]);
    fail_usage(command, MESSAGE_E0604, name);
    if (!diag_help_nearest(command->cx.diag, name, names, n))
        diag_help(command->cx.diag, "mlc %s --help lists the options", command->verb->name);
    return false;
}

static bool wrong_verb(Command *command, const OptionDef *def)
{
    Text verbs = {.arena = command->cx.arena};
    for (int i = 0; i < verb_count; i++)
        if (option_goes_with(def, &verb_rows[i]))
            text_add(&verbs, "%s%s", verbs.length > 0 ? ", " : "", verb_rows[i].name);
    return fail_usage(command, MESSAGE_E0605, spelling(def), command->verb->name, verbs.at), false;
}

// The words of "a|b|c".
static int split_words(Command *command, const char *list, const char *words[], int room)
{
    int n = 0;
    for (const char *at = list; *at != 0 && n < room; at += at[strcspn(at, "|")] != 0 ? strcspn(at, "|") + 1 : strcspn(at, "|"))
        words[n++] = arena_string(command->cx.arena, at, strcspn(at, "|"));
    return n;
}

static int option_words(Command *command, const OptionDef *def, const char *words[], int room)
{
    int n = 0;
    if (def->at == offsetof(Command, emit)) {
        for (; n < emit_count && n < room; n++)
            words[n] = emit_rows[n].name;
    } else if (def->at == offsetof(Command, target)) {
        for (; n < target_count && n < room; n++)
            words[n] = target_rows[n].name;
    } else if (def->at == offsetof(Command, show)) {
        words[n++] = "all";
        for (int i = 0; pass_at(i) != NULL && n < room; i++)
            words[n++] = pass_at(i)->name;
    } else {
        n = split_words(command, def->argument, words, room);
    }
    return n;
}

static bool word_is_known(Command *command, const OptionDef *def, const char *word)
{
    const char *words[NAMES_MOST];
    int count = option_words(command, def, words, NAMES_MOST);
    Text all = {.arena = command->cx.arena};
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0)
            return true;
        text_add(&all, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    fail_usage(command, MESSAGE_E0607, spelling(def), *word ? word : "''");
    if (!diag_help_nearest(command->cx.diag, word, words, count))
        diag_help(command->cx.diag, "%s takes %s", spelling(def), all.at);
    return false;
}

static bool words_are_known(Command *command, const OptionDef *def, const char *list)
{
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (!word_is_known(command, def, arena_string(command->cx.arena, at, length)))
            return false;
        at += length;
        if (*at == 0)
            return true;
    }
}

static bool take_number(Command *command, const OptionDef *def, Option *option)
{
    int64_t number = 0;
    const char *at = option->text;
    for (; *at >= '0' && *at <= '9' && number <= COUNT_MOST; at++)
        number = 10 * number + (*at - '0');
    if (*at != 0 || number < 1 || number > COUNT_MOST)
        return fail_usage(command, MESSAGE_E0608, spelling(def), (int64_t)COUNT_MOST, option->text), false;
    option->number = number;
    return true;
}

static bool take_setting(Command *command, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return fail_usage(command, MESSAGE_E0609, text), false;
    NetSetting setting = {arena_string(command->cx.arena, text, (size_t)(equals - text)), equals + 1};
    LIST_ADD(command->cx.arena, command->settings, setting);
    return true;
}

static bool take_argument(Command *command, const OptionDef *def, const char *argument)
{
    Option *option = option_of(command, def);
    bool repeats = def->kind == OPTION_REPEAT || def->kind == OPTION_PREFIX;
    if (option->given && takes_argument(def) && !repeats)
        return fail_usage(command, MESSAGE_E0610, spelling(def), option->text, argument), false;
    option->given = true;
    if (takes_argument(def))
        option->text = argument;
    switch (def->kind) {
    case OPTION_FLAG:
    case OPTION_TEXT: return true;
    case OPTION_FILE:
    case OPTION_FOLDER:
        if (*argument == 0)
            return fail_usage(command, MESSAGE_E0606, spelling(def), def->argument), false;
        return true;
    case OPTION_COUNT: return take_number(command, def, option);
    case OPTION_WORD: return word_is_known(command, def, argument);
    case OPTION_WORDS: return words_are_known(command, def, argument);
    case OPTION_REPEAT:
    case OPTION_PREFIX: LIST_ADD(command->cx.arena, option->all, argument); break;
    }
    if (def->at == offsetof(Command, define))
        return take_setting(command, argument);
    if (def->at == offsetof(Command, limit) && !diag_set_limit(command->cx.diag, argument))
        return fail_usage(command, MESSAGE_E0611, argument), false;
    if (def->at == offsetof(Command, warn) &&
        !diag_set_warning(command->cx.diag, arena_printf(command->cx.arena, "-W%s", argument)))
        return fail_usage(command, MESSAGE_E0612, argument), false;
    return true;
}

// Takes the option at words[*i], and its argument.
static bool take_option(Command *command, const Words *words, int *i)
{
    const char *word = words->at.at[*i], *argument;
    const OptionDef *def = option_match(word, &argument);
    if (def == NULL)
        return unknown_option(command, word);
    if (!option_goes_with(def, command->verb))
        return wrong_verb(command, def);
    if (!takes_argument(def))
        return argument == NULL ? take_argument(command, def, NULL)
                                : (fail_usage(command, MESSAGE_E0613, spelling(def)), false);
    if (argument == NULL && *i + 1 < words->at.count)
        argument = words->at.at[++*i];
    if (argument == NULL)
        return fail_usage(command, MESSAGE_E0606, spelling(def), def->argument), false;
    return take_argument(command, def, argument);
}

// --- Verbs -----------------------------------------------------------------------------------------------------------

static bool unknown_verb(Command *command, const char *word)
{
    const char *names[NAMES_MOST];
    int n = 0;
    for (int i = 0; i < verb_count; i++)
        names[n++] = verb_rows[i].name;
    for (int i = 0; i < COUNT(later_verbs); i++) {
        if (strcmp(later_verbs[i], word) == 0)
            return fail_usage(command, MESSAGE_E0901, arena_printf(command->cx.arena, "mlc %s", word)), false;
    }
    fail_usage(command, MESSAGE_E0614, word);
    size_t length = strlen(word);
    if (length > 4 && strcmp(word + length - 4, ".net") == 0)
        diag_help(command->cx.diag, "mlc compile %s", word);
    else if (!diag_help_nearest(command->cx.diag, word, names, n))
        diag_help(command->cx.diag, "mlc --help lists the verbs");
    return false;
}

static bool count_operands(Command *command)
{
    int n = command->operands.count;
    if (n < command->verb->least)
        return fail_usage(command, MESSAGE_E0615, command->verb->name, command->verb->operands), false;
    if (n > command->verb->most)
        return fail_usage(command, MESSAGE_E0616, command->verb->name, command->operands.at[command->verb->most]), false;
    return true;
}

static void set_defaults(Command *command)
{
    for (int i = 0; i < option_count; i++) {
        Option *option = option_of(command, &option_rows[i]);
        option->text = option_rows[i].initial;
        option->number = option_rows[i].kind == OPTION_COUNT && *option->text ? atoi(option->text) : 0;
    }
}

// --diagnostics and --color are wanted even when another word is wrong, so they are looked for first.
static void find_manner(Command *command, const Words *words)
{
    static const size_t manners[] = {offsetof(Command, diagnostics), offsetof(Command, color)};
    for (int i = 0; i < words->at.count; i++) {
        const char *argument;
        const OptionDef *def = option_match(words->at.at[i], &argument);
        if (argument == NULL && i + 1 < words->at.count)
            argument = words->at.at[i + 1];
        for (int k = 0; k < COUNT(manners); k++)
            if (def != NULL && def->at == manners[k] && argument != NULL)
                option_of(command, def)->text = argument;
    }
}

bool command_parse(Command *command, int argc, char **argv)
{
    Words words = {.command = command};
    set_defaults(command);
    for (int i = 2; i < argc; i++)
        if (!add_words(&words, argv[i], 0))
            return false;
    find_manner(command, &words);
    command->verb = verb_find(argv[1]);
    if (command->verb == NULL)
        return unknown_verb(command, argv[1]);
    bool only_operands = false, good = true;
    for (int i = 0; good && i < words.at.count; i++) {
        const char *word = words.at.at[i];
        if (!only_operands && strcmp(word, "--") == 0)
            only_operands = true;
        else if (!only_operands && word[0] == '-' && word[1] != 0)
            good = take_option(command, &words, &i);
        else
            LIST_ADD(command->cx.arena, command->operands, word);
    }
    command->cx.diag->max_errors = (int)command->max_errors.number;
    return good && (command->help.given || count_operands(command));
}
