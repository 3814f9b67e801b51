// help.c: --help, `mlc options`, the completions and the manual page: all printed from the rows of options.def, so that none
// can forget an option or tell another default than the parser has.
#include "driver.h"

#include "../ops/op.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 30 };

static const char *const exits = "Exit codes: 0 done, 1 the input or the machine is at fault, 2 usage, 3 a fault of mlc.";

// --- Rows as text ----------------------------------------------------------------------------------------------------

// "-o, --output FILE"
static void put_names(Text *text, const OptionDef *def)
{
    bool both = *def->letter && *def->word;
    text_add(text, "%s%s%s", def->letter, both ? ", " : *def->word ? "    " : "", def->word);
    if (*def->argument)
        text_add(text, "%s%s", def->kind == OPTION_PREFIX ? "" : " ", def->argument);
}

static void put_option(Text *text, const OptionDef *def)
{
    Text row = {.arena = text->arena};
    text_add(&row, "  ");
    put_names(&row, def);
    text_pad(&row, COLUMN);
    text_add(text, row.length > COLUMN ? "%s  %s" : "%s%s", row.at, def->brief);
    text_add(text, *def->initial ? " (default: %s)\n" : "\n", def->initial);
}

static void put_pair(Text *text, const char *name, const char *brief)
{
    Text row = {.arena = text->arena};
    text_add(&row, "  %s", name);
    text_pad(&row, COLUMN);
    text_add(text, row.length > COLUMN ? "%s  %s\n" : "%s%s\n", row.at, brief);
}

static void put_wrapped(Text *text, const char *prose)
{
    enum { WIDTH = 100 };
    size_t column = 0;
    for (const char *at = prose + strspn(prose, " "); *at != 0; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            text_add(text, "\n");
            column = 0;
        }
        text_add(text, "%s%.*s", column > 0 ? " " : "", (int)length, at);
        column += length + (column > 0);
        at += length;
    }
    text_add(text, "\n");
}

static void put_indented(Text *text, const char *lines)
{
    while (*lines != 0) {
        size_t length = strcspn(lines, "\n");
        text_add(text, "  %.*s\n", (int)length, lines);
        lines += length + (lines[length] != 0);
    }
}

static const char *emit_name(Text *text, const EmitDef *def)
{
    return arena_printf(text->arena, "%-10s %s", def->name, strcmp(def->file, "-") == 0 ? "" : def->file);
}

static void put_tables(Text *text)
{
    text_add(text, "\nWhat --emit makes (%% is the name of the net; without --emit: train where there is a train section, else obj)\n");
    for (int i = 0; i < emit_count; i++)
        put_pair(text, emit_name(text, &emit_rows[i]), emit_rows[i].brief);
    text_add(text, "\nTargets\n");
    for (int i = 0; i < target_count; i++)
        put_pair(text, target_rows[i].name, target_rows[i].brief);
}

// --- --help ----------------------------------------------------------------------------------------------------------

static void help_verb(Text *text, const VerbDef *verb)
{
    text_add(text, "usage: mlc %s%s%s [options]\n\n", verb->name, *verb->operands ? " " : "", verb->operands);
    put_wrapped(text, *verb->text ? verb->text : verb->brief);
    text_add(text, "\nOptions\n");
    for (int i = 0; i < option_count; i++)
        if (option_goes_with(&option_rows[i], verb))
            put_option(text, &option_rows[i]);
    if (strcmp(verb->name, "compile") == 0)
        put_tables(text);
    text_add(text, "\nExample\n");
    put_indented(text, verb->example);
    text_add(text, "\n%s\n", exits);
}

void help_print(Text *text, const VerbDef *verb)
{
    if (verb != NULL) {
        help_verb(text, verb);
        return;
    }
    text_add(text, "usage: mlc VERB [operands] [options]\n\nmlc compiles models: from a .net file to a training program, or to an "
                   "object for inference.\n\nVerbs (mlc VERB --help has the options of each)\n");
    for (int i = 0; i < verb_count; i++)
        put_pair(text, arena_printf(text->arena, "%s %s", verb_rows[i].name, verb_rows[i].operands), verb_rows[i].brief);
    text_add(text, "\nExample\n  mlc compile digits.net && ./digits-train --epochs 20\n\n%s\n", exits);
    text_add(text, "Words are also read from FILE where @FILE stands. mlc --version [-v] says what was built.\n");
}

// --- mlc options -----------------------------------------------------------------------------------------------------

typedef struct TrainerRow { const char *title, *name, *argument, *initial, *brief; } TrainerRow;

static const TrainerRow trainer_rows[] = {
#define GROUP(title) {title, NULL, NULL, NULL, NULL},
#define OPTION(field, name, kind, argument, initial, brief) {NULL, name, argument, initial, brief},
#include "../../runtime/options.def"
#undef GROUP
#undef OPTION
};

static const char *trainer_name(Text *text, const TrainerRow *row)
{
    return arena_printf(text->arena, "--%s%s%s", row->name, *row->argument ? " " : "", row->argument);
}

static void put_verbs_of(Text *text, const OptionDef *def)
{
    const char *comma = "";
    if (strcmp(def->verbs, " * ") == 0)
        return;
    text_add(text, "%*s(", COLUMN, "");
    for (int i = 0; i < verb_count; i++)
        if (option_goes_with(def, &verb_rows[i])) {
            text_add(text, "%s%s", comma, verb_rows[i].name);
            comma = ", ";
        }
    text_add(text, ")\n");
}

ExitCode verb_options(Command *command)
{
    Text text = {.arena = command->cx.arena};
    text_add(&text, "Options of mlc, and the verbs they go with (none: all)\n");
    for (int i = 0; i < option_count; i++) {
        put_option(&text, &option_rows[i]);
        put_verbs_of(&text, &option_rows[i]);
    }
    put_tables(&text);
    text_add(&text, "\nOptions of a training program\n");
    for (int i = 0; i < COUNT(trainer_rows); i++)
        if (trainer_rows[i].title == NULL)
            put_pair(&text, trainer_name(&text, &trainer_rows[i]), trainer_rows[i].brief);
    fputs(text.at, stdout);
    puts("\nWarnings (-Wno-NAME switches one off, -Werror=NAME makes it an error)");
    warnings_print(stdout);
    puts("\nLimits (--limit NAME=VALUE)");
    limits_print(stdout);
    return EXIT_DONE;
}

// --- Completion ------------------------------------------------------------------------------------------------------

static void put_options_of(Text *text, const VerbDef *verb)
{
    const char *blank = "";
    for (int i = 0; i < option_count; i++) {
        const OptionDef *def = &option_rows[i];
        if (!option_goes_with(def, verb))
            continue;
        if (*def->letter && def->kind != OPTION_PREFIX) {
            text_add(text, "%s%s", blank, def->letter);
            blank = " ";
        }
        if (*def->word) {
            text_add(text, "%s%s", blank, def->word);
            blank = " ";
        }
    }
}

// The words an option takes, with blanks between; false: any.
static bool put_choices(Text *text, const OptionDef *def)
{
    if (def->at == offsetof(Command, emit))
        for (int i = 0; i < emit_count; i++)
            text_add(text, "%s%s", i > 0 ? " " : "", emit_rows[i].name);
    else if (def->at == offsetof(Command, target))
        for (int i = 0; i < target_count; i++)
            text_add(text, "%s%s", i > 0 ? " " : "", target_rows[i].name);
    else if (def->at == offsetof(Command, show))
        for (int i = -1; i < 0 || pass_at(i) != NULL; i++)
            text_add(text, "%s%s", i < 0 ? "" : " ", i < 0 ? "all" : pass_at(i)->name);
    else if (def->kind == OPTION_WORD)
        for (const char *at = def->argument; *at != 0; at++)
            text_put(text, *at == '|' ? " " : at, 1);
    else
        return false;
    return true;
}

static void put_operands(Text *text, const VerbDef *verb)
{
    if (strcmp(verb->name, "ops") == 0)
        for (int i = 0; i < op_count(); i++)
            text_add(text, "%s%s", i > 0 ? " " : "", op_at(i)->name);
    else if (strcmp(verb->name, "completion") == 0)
        text_add(text, "bash zsh fish");
    else if (strcmp(verb->name, "explain") == 0)
        for (int i = 0; i < MESSAGE_COUNT; i++)
            text_add(text, "%s%s", i > 0 ? " " : "", message_code((MessageId)i));
}

static const char *names_pattern(Text *text, const OptionDef *def)
{
    bool both = *def->letter && *def->word;
    return arena_printf(text->arena, "%s%s%s", def->letter, both ? "|" : "", def->word);
}

static void completion_bash(Text *text)
{
    text_add(text, "# Completion of mlc for bash, printed by `mlc completion bash`.\n_mlc_words()\n{\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} options= operands=\n"
                   "    COMPREPLY=()\n"
                   "    if [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                   "    if [ \"$cur\" = = ]; then cur=; fi\n"
                   "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    for (int i = 0; i < verb_count; i++)
        text_add(text, "%s ", verb_rows[i].name);
    text_add(text, "--help --version' -- \"$cur\"))\n        return\n    fi\n    case $prev in\n");
    for (int i = 0; i < option_count; i++) {
        Text choices = {.arena = text->arena};
        const OptionDef *def = &option_rows[i];
        if (def->kind == OPTION_FLAG || def->kind == OPTION_PREFIX)
            continue;
        text_add(text, "    %s)\n", names_pattern(text, def));
        if (put_choices(&choices, def))
            text_add(text, "        COMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n", choices.at);
        else if (def->kind == OPTION_FILE || def->kind == OPTION_FOLDER)
            text_add(text, "        COMPREPLY=($(compgen -%c -- \"$cur\"))\n", def->kind == OPTION_FILE ? 'f' : 'd');
        text_add(text, "        return ;;\n");
    }
    text_add(text, "    esac\n    case $verb in\n");
    for (int i = 0; i < verb_count; i++) {
        Text operands = {.arena = text->arena};
        text_put(&operands, "", 0);
        put_operands(&operands, &verb_rows[i]);
        text_add(text, "    %s) options='", verb_rows[i].name);
        put_options_of(text, &verb_rows[i]);
        text_add(text, "'%s%s%s ;;\n", operands.length > 0 ? "\n        operands='" : "", operands.at, operands.length > 0 ? "'" : "");
    }
    text_add(text, "    esac\n    case $cur in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n    *)\n"
                   "        if [ -n \"$operands\" ]; then COMPREPLY=($(compgen -W \"$operands\" -- \"$cur\"))\n"
                   "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n    esac\n}\ncomplete -o filenames -F _mlc_words mlc\n");
}

// zsh runs bash's functions, so there is one to keep right. As a file of zsh's own (_mlc) it also completes the first time.
static void completion_zsh(Text *text)
{
    text_add(text, "#compdef mlc\n# Completion of mlc for zsh, printed by `mlc completion zsh`: bash's, by zsh's own bridge.\n"
                   "autoload -Uz bashcompinit && bashcompinit\n");
    completion_bash(text);
    text_add(text, "if [ \"$funcstack[1]\" = _mlc ]; then _bash_complete -o filenames -F _mlc_words; fi\n");
}

static void put_fish_string(Text *text, const char *from)
{
    text_put(text, "'", 1);
    for (; *from != 0; from++)
        text_add(text, *from == '\'' || *from == '\\' ? "\\%c" : "%c", *from);
    text_put(text, "'", 1);
}

static void fish_option(Text *text, const OptionDef *def)
{
    Text choices = {.arena = text->arena};
    text_add(text, "complete -c mlc");
    if (strcmp(def->verbs, " * ") != 0) {
        text_add(text, " -n '__fish_seen_subcommand_from%s", def->verbs);
        text->length--;                                 // the last blank
        text_add(text, "'");
    }
    if (strlen(def->letter) == 2)
        text_add(text, " -s %s", def->letter + 1);
    else if (*def->letter)
        text_add(text, " -o %s", def->letter + 1);
    if (*def->word)
        text_add(text, " -l %s", def->word + 2);
    if (def->kind != OPTION_FLAG)
        text_add(text, def->kind == OPTION_FILE || def->kind == OPTION_FOLDER ? " -rF" : " -x");
    if (put_choices(&choices, def)) {
        text_add(text, " -a ");
        put_fish_string(text, choices.at);
    }
    text_add(text, " -d ");
    put_fish_string(text, def->brief);
    text_add(text, "\n");
}

static void completion_fish(Text *text)
{
    text_add(text, "# Completion of mlc for fish, printed by `mlc completion fish`.\n");
    for (int i = 0; i < verb_count; i++) {
        Text operands = {.arena = text->arena};
        text_add(text, "complete -c mlc -n __fish_use_subcommand -f -a %s -d ", verb_rows[i].name);
        put_fish_string(text, verb_rows[i].brief);
        text_add(text, "\n");
        text_put(&operands, "", 0);
        put_operands(&operands, &verb_rows[i]);
        if (operands.length > 0)
            text_add(text, "complete -c mlc -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", verb_rows[i].name, operands.at);
    }
    for (int i = 0; i < option_count; i++)
        fish_option(text, &option_rows[i]);
}

ExitCode verb_completion(Command *command)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    static void (*const printers[])(Text *text) = {completion_bash, completion_zsh, completion_fish};
    Text text = {.arena = command->cx.arena};
    for (int i = 0; i < COUNT(shells); i++)
        if (strcmp(command->operands.at[0], shells[i]) == 0) {
            printers[i](&text);
            fputs(text.at, stdout);
            return EXIT_DONE;
        }
    fail_usage(command, MESSAGE_E0618, "shell with a completion", command->operands.at[0]);
    diag_help(command->cx.diag, "bash, zsh and fish are there");
    return EXIT_USAGE;
}

// --- The manual page (mdoc) --------------------------------------------------------------------------------------------

// Text, in lines of at most WIDTH: a word that would begin a line as a macro, or be an escape, is made to be none.
static void put_mdoc(Text *text, const char *from)
{
    enum { WIDTH = 78 };
    size_t column = 0;
    for (const char *at = from; *at != 0; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        bool first = column == 0 || column + 1 + length > WIDTH;
        if (column > 0)
            text_put(text, first ? "\n" : " ", 1);
        if (first && (*at == '.' || *at == '\''))
            text_add(text, "\\&");
        for (size_t i = 0; i < length; i++)
            text_add(text, at[i] == '\\' ? "\\e" : "%c", at[i]);
        column = first ? length : column + 1 + length;
        at += length;
    }
    text_add(text, "\n");
}

// A word on a macro line: one argument, whatever is in it.
static void put_argument(Text *text, const char *from)
{
    text_add(text, " \"");
    for (; *from != 0; from++)
        text_add(text, *from == '"' ? "\"\"" : *from == '\\' ? "\\e" : *from == '-' ? "\\-" : "%c", *from);
    text_add(text, "\"");
}

// Each sentence on a line of its own, as manual pages have it.
static void put_sentences(Text *text, const char *prose)
{
    while (*prose != 0) {
        const char *end = strstr(prose, ". ");
        size_t length = end != NULL ? (size_t)(end - prose) + 1 : strlen(prose);
        put_mdoc(text, arena_string(text->arena, prose, length));
        prose += length;
        prose += strspn(prose, " ");
    }
}

static void man_option(Text *text, const OptionDef *def)
{
    const char *names[] = {def->letter, def->word}, *comma = "";
    text_add(text, ".It");
    for (int i = 0; i < COUNT(names); i++)
        if (*names[i]) {
            text_add(text, "%s Fl", comma);
            put_argument(text, names[i] + 1);
            if (*def->argument && (i == 1 || !*def->word)) {
                text_add(text, def->kind == OPTION_PREFIX ? " Ns Ar" : " Ar");
                put_argument(text, def->argument);
            }
            comma = " ,";
        }
    text_add(text, "\n");
    put_mdoc(text, arena_printf(text->arena, *def->initial ? "%s (default: %s)." : "%s.", def->brief, def->initial));
}

static void man_example(Text *text, const char *lines)
{
    text_add(text, ".Bd -literal -offset indent\n");
    while (*lines != 0) {
        size_t length = strcspn(lines, "\n");
        for (size_t i = 0; i < length; i++)             // the lines as they are, but for escapes
            text_add(text, lines[i] == '\\' ? "\\e" : "%c", lines[i]);
        text_add(text, "\n");
        lines += length + (lines[length] != 0);
    }
    text_add(text, ".Ed\n");
}

static void man_verbs(Text *text)
{
    text_add(text, ".Sh COMMANDS\n");
    for (int i = 0; i < verb_count; i++) {
        const VerbDef *verb = &verb_rows[i];
        text_add(text, ".Ss");
        put_argument(text, arena_printf(text->arena, "mlc %s%s%s", verb->name, *verb->operands ? " " : "", verb->operands));
        text->length--;                                 // before the closing quote: a last point ends no sentence
        text_add(text, "\\&\"\n");
        put_mdoc(text, arena_printf(text->arena, "%c%s.", verb->brief[0] - 'a' + 'A', verb->brief + 1));
        put_sentences(text, verb->text);
        if (strcmp(verb->name, "options") != 0 && strcmp(verb->name, "man") != 0)
            man_example(text, verb->example);
    }
}

static void man_pairs(Text *text, const char *title)
{
    text_add(text, ".Sh");
    put_argument(text, title);
    text_add(text, "\n.Bl -tag -width Ds\n");
}

ExitCode verb_man(Command *command)
{
    Text page = {.arena = command->cx.arena}, *text = &page;
    text_add(text, ".Dd December 1, 2026\n.Dt MLC 1\n.Os\n.Sh NAME\n.Nm mlc\n.Nd ahead-of-time compiler of models\n"
                   ".Sh SYNOPSIS\n.Nm\n.Ar verb\n.Op Ar operands\n.Op Ar options\n.Sh DESCRIPTION\n.Nm\n"
                   "reads a model written in the .net language and writes a specialised C\nprogram: a training program, or an "
                   "object for inference.\nNeither needs Python or a framework.\n.Pp\n"
                   "Where a word begins with @, the words of the file of that name stand\nin its place.\n");
    man_verbs(text);
    man_pairs(text, "OPTIONS");
    for (int i = 0; i < option_count; i++)
        man_option(text, &option_rows[i]);
    text_add(text, ".El\n");
    man_pairs(text, "KINDS OF RESULTS");
    for (int i = 0; i < emit_count; i++) {
        text_add(text, ".It Cm");
        put_argument(text, emit_rows[i].name);
        text_add(text, "\n");
        put_mdoc(text, arena_printf(text->arena, "%s.", emit_rows[i].brief));
    }
    text_add(text, ".El\n");
    man_pairs(text, "TARGETS");
    for (int i = 0; i < target_count; i++) {
        text_add(text, ".It Cm");
        put_argument(text, target_rows[i].name);
        text_add(text, "\n");
        put_mdoc(text, arena_printf(text->arena, "%s.", target_rows[i].brief));
    }
    text_add(text, ".El\n");
    man_pairs(text, "OPTIONS OF A TRAINING PROGRAM");
    for (int i = 0; i < COUNT(trainer_rows); i++)
        if (trainer_rows[i].title == NULL) {
            text_add(text, ".It Fl");
            put_argument(text, arena_printf(text->arena, "-%s", trainer_rows[i].name));
            if (*trainer_rows[i].argument) {
                text_add(text, " Ar");
                put_argument(text, trainer_rows[i].argument);
            }
            text_add(text, "\n");
            put_mdoc(text, arena_printf(text->arena, "%s.", trainer_rows[i].brief));
        }
    text_add(text, ".El\n.Sh ENVIRONMENT\n.Bl -tag -width MLC_HOME\n"
                   ".It Ev CC\nThe C compiler, with arguments of its own.\n"
                   ".It Ev MLC_HOME\nThe folder that mlc is installed in, if it is not where its own file lies.\n"
                   ".It Ev NO_COLOR , CLICOLOR_FORCE , FORCE_COLOR\nWhether messages have colours.\n"
                   ".It Ev TMPDIR\nWhere the folder of intermediate files is made.\n.El\n"
                   ".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\nDone.\n.It 1\nThe input is at fault, or the machine: a full disk, no memory.\n"
                   ".It 2\nThe command line is not understood.\n.It 3\nA fault of\n.Nm .\n.El\n.Pp\n"
                   "A training program also ends with 4 when it was stopped and has saved,\nand with 5 when it diverged.\n");
    fputs(text->at, stdout);
    return EXIT_DONE;
}
