// main.c: picks the verb and runs it. The table of verbs and options is options.def; driver.h says what is where.
//
// Exit codes: 0 done, 1 the input is at fault (or the machine: a full disk, no memory), 2 usage, 3 a fault of mlc.
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

// --color, NO_COLOR, CLICOLOR_FORCE or FORCE_COLOR, a terminal: the first that says something decides.
static bool wants_color(const Command *command)
{
    const char *when = command->color.text;
    if (when != NULL && strcmp(when, "always") == 0)
        return true;
    if ((when != NULL && strcmp(when, "never") == 0) || *variable("NO_COLOR"))
        return false;
    if ((*variable("CLICOLOR_FORCE") && strcmp(variable("CLICOLOR_FORCE"), "0") != 0) || *variable("FORCE_COLOR"))
        return true;
    return isatty(STDERR_FILENO) && strcmp(variable("TERM"), "dumb") != 0;
}

static void print_version(bool verbose)
{
    puts("mlc " MLC_VERSION);
    if (verbose)
        printf("compiled by %s\nzlib %s (%s)\ntargets of the CPU: see mlc compile --help\n", __VERSION__, zlibVersion(), ZLIB_VERSION);
}

static int finish(Command *command, int code)
{
    Diag *diag = command->cx.diag;
    bool json = command->diagnostics.text != NULL && strcmp(command->diagnostics.text, "json") == 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_DONE)
        code = fail_input(command, MESSAGE_E0705, "standard output", strerror(errno));
    if (code == EXIT_DONE && diag->errors > 0)
        code = EXIT_INPUT;
    diag->json = json;
    diag->color = !json && wants_color(command);
    if (command->times.at != NULL)
        fputs(command->times.at, json ? stdout : stderr);
    diag_print(diag, stderr);
    if (fflush(stdout) != 0 && code == EXIT_DONE)
        code = EXIT_INPUT;
    arena_free(command->cx.arena);
    return code;
}

static int run(Command *command, int argc, char **argv)
{
    Text help = {.arena = command->cx.arena};
    if (!command_parse(command, argc, argv))
        return EXIT_USAGE;
    command->cx.diag->json = strcmp(command->diagnostics.text, "json") == 0;
    if (!command->help.given)
        return (int)command->verb->run(command);
    help_print(&help, command->verb);
    fputs(help.at, stdout);
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);                           // a file size limit is a failed write, with a message
    Arena *arena = arena_new();
    Command command = {.cx = {.arena = arena, .names = names_new(arena), .diag = diag_new(arena), .symbols = map_new(arena)},
                       .times = {.arena = arena}};
    time_note(&command, NULL);
    const char *first = argc > 1 ? argv[1] : "";
    bool help = argc < 2 || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0;
    if (strcmp(first, "--version") == 0) {
        print_version(argc > 2 && (strcmp(argv[2], "-v") == 0 || strcmp(argv[2], "--verbose") == 0));
        return finish(&command, EXIT_DONE);
    }
    if (!help)
        return finish(&command, run(&command, argc, argv));
    Text text = {.arena = arena};
    help_print(&text, argc > 2 ? verb_find(argv[2]) : NULL);
    fputs(text.at, argc < 2 ? stderr : stdout);
    return finish(&command, argc < 2 ? EXIT_USAGE : EXIT_DONE);
}
