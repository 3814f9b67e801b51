// manuals.c: the small verbs: check, fmt, ops, passes, explain.
#include "driver.h"

#include "../ops/op.h"

#include <stdio.h>
#include <string.h>

ExitCode verb_check(Command *command)
{
    bool good = true;
    for (; command->operands.count > 0; command->operands.at++, command->operands.count--) {
        command->cx.symbols = map_new(command->cx.arena);               // each model has named sizes of its own
        good &= model_read(command) != NULL;
    }
    return good ? EXIT_DONE : EXIT_INPUT;
}

// --- fmt -------------------------------------------------------------------------------------------------------------

static bool format_file(Command *command, const char *path)
{
    Context *cx = &command->cx;
    const char *bytes, *why;
    int length;
    if (!file_load(command, path, &bytes, &length, &why))
        return fail_input(command, MESSAGE_E0701, path, why), false;
    command->read.count = 0;                            // the file itself is what is replaced
    NetFile *file = net_parse(cx->diag, cx->arena, cx->names, diag_add_source(cx->diag, path, bytes, length), true);
    if (file->broken)
        return false;
    const char *text = net_format(cx->arena, cx->diag, file);
    if (strlen(text) == (size_t)length && memcmp(text, bytes, (size_t)length) == 0)
        return true;
    if (!command->check.given)
        return result_write(command, path, text, strlen(text));
    puts(path);
    return false;
}

ExitCode verb_fmt(Command *command)
{
    bool good = true;
    for (int i = 0; i < command->operands.count; i++)
        good &= format_file(command, command->operands.at[i]);
    return good ? EXIT_DONE : EXIT_INPUT;
}

// --- Pages -----------------------------------------------------------------------------------------------------------

static ExitCode print(const Text *text)
{
    if (text->at != NULL)
        fwrite(text->at, 1, text->length, stdout);
    return EXIT_DONE;
}

static void list_data_ops(Text *text)
{
    for (int i = 0; i < op_count(); i++)
        if (op_at(i)->traits & OP_DATA) {
            text_add(text, "%s ", op_at(i)->name);
            text_pad(text, 18);
            text_add(text, "%s\n", op_at(i)->brief);
        }
}

static ExitCode unknown_op(Command *command, const char *name)
{
    const char **names = NEW_ARRAY(command->cx.arena, const char *, op_count());
    for (int i = 0; i < op_count(); i++)
        names[i] = op_at(i)->name;
    fail_input(command, MESSAGE_E0618, "op", name);
    if (!diag_help_nearest(command->cx.diag, name, names, op_count()))
        diag_help(command->cx.diag, "mlc ops lists all");
    return EXIT_INPUT;
}

ExitCode verb_ops(Command *command)
{
    Text text = {.arena = command->cx.arena};
    ExitCode code = EXIT_DONE;
    if (command->data.given)
        list_data_ops(&text);
    else if (command->operands.count == 0)
        ops_list(&text);
    for (int i = 0; i < command->operands.count; i++) {
        const OpDef *op = op_find(command->operands.at[i]);
        if (op == NULL) {
            code = unknown_op(command, command->operands.at[i]);
            continue;
        }
        text_add(&text, i > 0 ? "\n" : "");
        op_manual(&text, op);
    }
    print(&text);
    return code;
}

ExitCode verb_passes(Command *command)
{
    Text text = {.arena = command->cx.arena};
    passes_list(&text);
    return print(&text);
}

ExitCode verb_explain(Command *command)
{
    ExitCode code = EXIT_DONE;
    for (int i = 0; i < command->operands.count; i++)
        if (!message_explain(command->operands.at[i], stdout))
            code = fail_input(command, MESSAGE_E0618, "message", command->operands.at[i]);
    return code;
}
