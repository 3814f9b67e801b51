// toolchain.c: where the runtime is, and the call of the C compiler.
//
// The runtime is found from where mlc itself lies, so an installed tree can be moved: PREFIX/bin/mlc has PREFIX/lib/mlc and
// PREFIX/include/mlc; in a build folder it lies beside. MLC_HOME names another such folder.
//
// Tools run without a shell, in the folder of intermediate files, with names relative to it, so no path of this machine gets into
// what they make. What they say is kept, and shown if they fail.
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// --- Home ------------------------------------------------------------------------------------------------------------

typedef struct Layout { const char *library, *headers; bool by_name; } Layout;   // by_name: from MLC_HOME, else from the folder of mlc

static const Layout layouts[] = {
    {"../lib/mlc/libmlrt.a", "../include/mlc", false},  // installed: mlc is in bin
    {"libmlrt.a", "include/mlc", false},                // a build folder
    {"lib/mlc/libmlrt.a", "include/mlc", true},         // where it was installed to
    {"libmlrt.a", "include/mlc", true},
};

static const char *own_folder(Command *command)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return NULL;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    return slash != NULL ? arena_string(command->cx.arena, path, (size_t)(slash - path)) : NULL;
}

bool home_find(Command *command, Home *home)
{
    Arena *arena = command->cx.arena;
    const char *from = getenv("MLC_HOME");
    Text tried = {.arena = arena};
    bool by_name = from != NULL && *from;
    from = by_name ? from : own_folder(command);
    for (int i = 0; from != NULL && i < COUNT(layouts); i++) {
        if (layouts[i].by_name != by_name)
            continue;
        *home = (Home){arena_printf(arena, "%s/%s", from, layouts[i].library), arena_printf(arena, "%s/%s", from, layouts[i].headers)};
        char *library = realpath(home->library, NULL), *headers = realpath(home->headers, NULL);
        bool there = library != NULL && headers != NULL && access(arena_printf(arena, "%s/mlrt.h", headers), R_OK) == 0;
        text_add(&tried, "%s%s", tried.length > 0 ? ", " : "", home->library);
        if (there)
            *home = (Home){arena_printf(arena, "%s", library), arena_printf(arena, "%s", headers)};
        free(library);
        free(headers);
        if (there)
            return true;
    }
    fail_input(command, MESSAGE_E0708, tried.at != NULL ? tried.at : "/proc/self/exe");
    return false;
}

// --- Running a tool --------------------------------------------------------------------------------------------------

static const char *const said_file = "tool-output.txt";

static FILE *remarks(const Command *command) { return command->cx.diag->json ? stdout : stderr; }

const char *quoted(Command *command, const char *word)
{
    Text text = {.arena = command->cx.arena};
    if (*word != 0 && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-./=,:@%")] == 0)
        return word;
    text_put(&text, "'", 1);
    for (; *word != 0; word++)
        text_add(&text, *word == '\'' ? "'\\''" : "%c", *word);
    text_put(&text, "'", 1);
    return text.at;
}

static const char *command_line(Command *command, const char *const *argument)
{
    Text line = {.arena = command->cx.arena};
    for (int i = 0; argument[i] != NULL; i++)
        text_add(&line, "%s%s", i > 0 ? " " : "", quoted(command, argument[i]));
    return line.at;
}

// Ours but for the language of messages, which are looked through, and the place of temporaries.
static char **tool_environment(Command *command, const char *folder)
{
    static const char *const replaced[] = {"LC_ALL=", "LANGUAGE=", "TMPDIR="};
    Arena *arena = command->cx.arena;
    int count = 0, n = 0;
    while (environ[count] != NULL)
        count++;
    char **variables = NEW_ARRAY(arena, char *, count + 3);
    for (int i = 0; i < count; i++) {
        bool ours = false;
        for (int k = 0; k < COUNT(replaced); k++)
            ours |= strncmp(environ[i], replaced[k], strlen(replaced[k])) == 0;
        if (!ours)
            variables[n++] = environ[i];
    }
    variables[n++] = arena_printf(arena, "LC_ALL=C");
    variables[n++] = arena_printf(arena, "TMPDIR=%s", folder);
    return variables;
}

static int tool_spawn(Command *command, const char *const *argument, const char *folder, pid_t *child)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t manner;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&manner);
    posix_spawnattr_setpgroup(&manner, 0);
    posix_spawnattr_setsigmask(&manner, &none);
    posix_spawnattr_setflags(&manner, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawn_file_actions_addchdir_np(&files, folder);
    if (failed == 0)
        failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_addopen(&files, 1, said_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (failed == 0)
        failed = posix_spawnp(child, argument[0], &files, &manner, (char *const *)argument, tool_environment(command, folder));
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&manner);
    return failed;
}

static const char *tool_said(Command *command)
{
    MlrtFile file;
    MlrtError error = {0};
    const char *path = work_file(command, said_file), *said = "";
    if (path != NULL && mlrt_file_open(path, &file, &error) == MLRT_OK) {
        said = arena_string(command->cx.arena, (const char *)file.at, file.bytes);
        mlrt_file_close(&file);
    }
    return said;
}

static void note_lines(Command *command, const char *said)
{
    enum { LINES = 20 };
    for (int i = 0; *said != 0 && i < LINES; i++) {
        size_t length = strcspn(said, "\n");
        if (length > 0)
            diag_note(command->cx.diag, (DiagPlace){0}, "%s", arena_string(command->cx.arena, said, length));
        said += length + (said[length] != 0);
    }
    if (*said != 0)
        diag_note(command->cx.diag, (DiagPlace){0}, "%s", "...");
}

// The fault is the machine's if there was no room, ours if the C compiler did not understand the text.
static ExitCode tool_failed(Command *command, const char *name, int status)
{
    static const char *const machine[] = {"No space left on device", "out of memory", "memory exhausted", "Disk quota exceeded",
                                          "Cannot allocate memory",  "File too large", "Killed signal"};
    const char *said = tool_said(command), *found = NULL;
    for (int i = 0; i < COUNT(machine) && found == NULL; i++)
        found = strstr(said, machine[i]) != NULL ? machine[i] : NULL;
    if (WIFSIGNALED(status) && found == NULL && WTERMSIG(status) == SIGKILL)
        found = "it was killed, perhaps because memory ran out";
    const char *why = found != NULL         ? found
                    : WIFSIGNALED(status) ? arena_printf(command->cx.arena, "signal %d", WTERMSIG(status))
                                          : arena_printf(command->cx.arena, "exit code %d", WEXITSTATUS(status));
    fail_fault(command, MESSAGE_E0707, arena_printf(command->cx.arena, "%s: %s", name, why));
    note_lines(command, said);
    return found != NULL ? EXIT_INPUT : EXIT_FAULT;
}

ExitCode tool_run(Command *command, const char *const *argument)
{
    const char *folder = work_folder(command);
    pid_t child;
    int status = 0;
    if (folder == NULL)
        return EXIT_INPUT;
    if (command->verbose.given) {
        fprintf(remarks(command), "%s\n", command_line(command, argument));
        fflush(remarks(command));
    }
    int failed = tool_spawn(command, argument, folder, &child);
    if (failed != 0)
        return fail_input(command, MESSAGE_E0706, argument[0], strerror(failed));
    work_child(child);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fail_fault(command, MESSAGE_E0707, strerror(errno));
    work_child(0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return tool_failed(command, argument[0], status);
    if (command->verbose.given)
        fputs(tool_said(command), remarks(command));
    return EXIT_DONE;
}

// --- The C compiler --------------------------------------------------------------------------------------------------

bool build_is_cross(const TargetDef *target)
{
    struct utsname machine;
    return *target->machine != 0 && uname(&machine) == 0 && strcmp(machine.machine, target->machine) != 0;
}

// --cc, else for another machine its compiler, else CC, else gcc. CC would be of this machine.
static const char *compiler_of(Command *command, const TargetDef *target)
{
    const char *from = getenv("CC");
    if (command->cc.given)
        return command->cc.text;
    if (build_is_cross(target))
        return target->compiler;
    return from != NULL && *from ? from : "gcc";
}

void build_add(Command *command, Build *build, const char *argument) { LIST_ADD(command->cx.arena, build->argument, argument); }

static void add_each(Command *command, Build *build, const char *words)
{
    for (const char *at = words + strspn(words, " "); *at != 0; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        build_add(command, build, arena_string(command->cx.arena, at, length));
        at += length;
    }
}

bool build_begin(Command *command, Build *build, const char *target)
{
    *build = (Build){.target = target_find(target)};
    add_each(command, build, compiler_of(command, build->target));
    if (build->argument.count == 0)
        return fail_input(command, MESSAGE_E0706, "''", "it has no name"), false;
    // Contraction and errno are what would change bits or stop vector code; the text says the first by itself too.
    add_each(command, build, "-std=gnu11 -O2 -fopenmp-simd -ffp-contract=off -fno-math-errno -fno-trapping-math");
    add_each(command, build, build->target->flags);
    return true;
}

ExitCode build_run(Command *command, Build *build)
{
    build_add(command, build, NULL);
    if (!command->dry_run.given)
        return tool_run(command, build->argument.at);
    puts(command_line(command, build->argument.at));
    return EXIT_DONE;
}
