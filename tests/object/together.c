// together.c: two models, and one of them again under another name, run by several threads at once, an arena each. All get the
// bits that one thread alone got. Compiled with the objects of bn.net, of the same as bn2, and of mlp.net.
#include "bn.h"
#include "bn2.h"
#include "mlp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, THREADS = 6, ROUNDS = 20 };

typedef struct Result { float bn[BATCH * 10], shares[BATCH * 10], bn2[BATCH * 10], mlp[BATCH * 10], middle[BATCH]; } Result;

static float image[THREADS][BATCH * 64];
static Result alone[THREADS];

static int run_all(const float *x, Result *r, void *arena, size_t room)
{
    float unused[BATCH * 10];
    const bn_io a = {.image = x, .logits = r->bn, .shares = r->shares};
    const bn2_io b = {.image = x, .logits = r->bn2, .shares = unused};
    const mlp_io c = {.image = x, .logits = r->mlp, .middle = r->middle};
    return bn_run(&a, BATCH, arena, room) == bn_OK && bn2_run(&b, BATCH, arena, room) == bn2_OK &&
           mlp_run(&c, BATCH, arena, room) == mlp_OK;
}

static size_t room_of_all(void)
{
    const size_t rooms[] = {bn_arena_bytes(BATCH), bn2_arena_bytes(BATCH), mlp_arena_bytes(BATCH)};
    size_t most = 0;
    for (int i = 0; i < 3; i++)
        most = rooms[i] > most ? rooms[i] : most;
    return (most + 63) / 64 * 64;
}

static void *work(void *context)
{
    const int t = *(const int *)context;
    const size_t room = room_of_all();
    void *arena = aligned_alloc(64, room);
    static const char fault[] = "fault";
    int good = arena != NULL;
    for (int i = 0; good && i < ROUNDS; i++) {
        Result r;
        memset(&r, 0, sizeof r);
        good = run_all(image[t], &r, arena, room) && memcmp(&r, &alone[t], sizeof r) == 0;
    }
    free(arena);
    return good ? NULL : (void *)fault;
}

int main(void)
{
    pthread_t thread[THREADS];
    int number[THREADS], failures = 0;
    const size_t room = room_of_all();
    void *arena = aligned_alloc(64, room), *fault;
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < BATCH * 64; i++)
            image[t][i] = (float)((i * 37 + t * 11) % 17) / 16;
        failures += arena == NULL || !run_all(image[t], &alone[t], arena, room);
        failures += memcmp(alone[t].bn, alone[t].bn2, sizeof alone[t].bn) != 0;
    }
    failures += memcmp(alone[0].bn, alone[1].bn, sizeof alone[0].bn) == 0 || memcmp(alone[0].bn, alone[0].mlp, sizeof alone[0].bn) == 0;
    for (int t = 0; t < THREADS; t++) {
        number[t] = t;
        if (pthread_create(&thread[t], NULL, work, &number[t]) != 0)
            return 2;
    }
    for (int t = 0; t < THREADS; t++)
        failures += pthread_join(thread[t], &fault) != 0 || fault != NULL;
    free(arena);
    if (failures > 0)
        printf("%d results differ\n", failures);
    return failures > 0;
}
