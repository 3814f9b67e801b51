// expect.h: what the tests of the compiler check with. A failure names its line and what was seen; the test goes on.
#ifndef EXPECT_H
#define EXPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static long checked, failed;

static inline bool expect_true(bool holds, const char *what, int line)
{
    checked++;
    failed += !holds;
    if (!holds && failed <= 20)
        printf("FAIL line %d: %s\n", line, what);
    return holds;
}

#define CHECK_TRUE(condition) ((void)expect_true((condition), #condition, __LINE__))
#define CHECK_EQUAL(seen, wanted)                                                                                           \
    do {                                                                                                                    \
        int64_t seen_ = (seen), wanted_ = (wanted);                                                                         \
        if (!expect_true(seen_ == wanted_, #seen, __LINE__) && failed <= 20)                                                \
            printf("    is %lld, expected %lld\n", (long long)seen_, (long long)wanted_);                                   \
    } while (0)
#define CHECK_TEXT(seen, wanted)                                                                                            \
    do {                                                                                                                    \
        const char *seen_ = (seen), *wanted_ = (wanted);                                                                    \
        if (!expect_true(strcmp(seen_, wanted_) == 0, #seen, __LINE__) && failed <= 20)                                     \
            printf("    is       \"%s\"\n    expected \"%s\"\n", seen_, wanted_);                                           \
    } while (0)

static inline int check_end(void)
{
    printf("%ld checks, %ld failed\n", checked, failed);
    return failed != 0;
}

#endif
