// check.h: CHECK for the tests of the trainer: says which condition failed, counts, and goes on.
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdio.h>

static int failures;

static void check(bool holds, const char *what, int line)
{
    if (!holds) {
        printf("line %d: %s\n", line, what);
        failures++;
    }
}
#define CHECK(condition) check(condition, #condition, __LINE__)

#endif
