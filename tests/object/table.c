// table.c: the rows of a table through the object of table.net, printed as --predict prints them: the class by its name, then
// the scores. Usage: table FILE.csv
#include "table.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    const size_t room = table_arena_bytes(1);
    char *arena = aligned_alloc(64, (room + 63) / 64 * 64);
    float height, width, depth, size[2], score[3];
    int32_t colour, code;
    char word[32];
    if (file == NULL || arena == NULL || fscanf(file, "%*[^\n]") == EOF)
        return 2;
    while (fscanf(file, "%f,%f,%31[^,],%f,%*[^\n]", &height, &width, word, &depth) == 4) {
        code = table_code_colour(word);
        const table_fields fields = {.height = &height, .width = &width, .colour = &code, .depth = &depth};
        const table_sample sample = {.size = size, .colour = &colour, .depth = &depth};
        const table_io io = {.size = size, .colour = &colour, .depth = &depth, .score = score};
        if (table_prepare(&fields, &sample) != table_OK || table_run(&io, 1, arena, room) != table_OK)
            return 1;
        int best = 0;
        for (int i = 1; i < 3; i++)
            best = score[i] > score[best] ? i : best;
        printf("%s,%.9g,%.9g,%.9g\n", table_label(0, best), (double)score[0], (double)score[1], (double)score[2]);
    }
    // Words that training did not meet, and an index that the embedding does not have.
    colour = 4;
    const table_io io = {.size = size, .colour = &colour, .depth = &depth, .score = score};
    const int good = table_code_colour("blu") == 0 && table_code_colour("blues") == 0 && table_code_colour(NULL) == 0 &&
                     table_code_colour("") == 0 && table_code_colour("blue") == 1 && table_label(0, 3) == NULL &&
                     table_info.output[0].labels == 3 && table_run(&io, 1, arena, room) == table_BAD_INDEX;
    colour = -1;
    if (!good || table_run(&io, 1, arena, room) != table_BAD_INDEX)
        return 3;
    free(arena);
    return fclose(file);
}
