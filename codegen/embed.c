// embed: writes texts as a C file, so that the compiler carries what it pastes into generated programs.
//
//   embed OUT.c FILE...     defines embedded_files[] of codegen.h: for each FILE its name without folders, and its text
//
// Each line becomes a string literal of its own; the C compiler joins them.
#include <stdio.h>
#include <string.h>

static void put_char(FILE *out, int c)
{
    if (c == '\n')
        fputs("\\n\"\n    \"", out);
    else if (c == '"' || c == '\\' || c == '?')     // ?: no trigraph can arise
        fprintf(out, "\\%c", c);
    else if (c < ' ' || c > '~')
        fprintf(out, "\\%03o", (unsigned)c);
    else
        fputc(c, out);
}

static int put_file(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        perror(path);
        return 1;
    }
    const char *slash = strrchr(path, '/');
    fprintf(out, "{\"%s\",\n    \"", slash != NULL ? slash + 1 : path);
    for (int c; (c = fgetc(in)) != EOF;)
        put_char(out, c);
    fputs("\"},\n", out);
    int bad = ferror(in);
    fclose(in);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: embed OUT.c FILE...\n", stderr);
        return 2;
    }
    FILE *out = fopen(argv[1], "wb");
    if (out == NULL) {
        perror(argv[1]);
        return 1;
    }
    int bad = 0;
    fputs("// Made by embed: the texts that generated programs contain.\n#include \"codegen.h\"\n\n", out);
    fputs("const EmbeddedFile embedded_files[] = {\n", out);
    for (int i = 2; i < argc; i++)
        bad |= put_file(out, argv[i]);
    fputs("{NULL, NULL}};\n", out);
    bad |= ferror(out) != 0;
    bad |= fclose(out) != 0;
    return bad ? 1 : 0;
}
