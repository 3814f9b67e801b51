// memory.c: the planner on random lives: no two that live at the same time overlap, places are aligned, the total is not
// below the bound and seldom much above it. The oracle compares every pair.
#include <stdio.h>

#include "../../passes/passes.h"

enum { PLANS = 10000, LIVES_MAX = 48, ALIGN = 64 };

static uint64_t state = 0x9e3779b97f4a7c15u;

static int64_t draw(int64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (int64_t)(state % (uint64_t)below);
}

// Three kinds of plans: anything; a forward pass whose values wait for the backward pass; equal sizes.
static int draw_lives(Life *lives, int kind)
{
    int count = 1 + (int)draw(LIVES_MAX), steps = 1 + (int)draw(60);
    for (int i = 0; i < count; i++) {
        int first = (int)draw(steps), length = (int)draw(1 + (kind == 0 ? steps : 4));
        lives[i] = (Life){.bytes = kind == 2 ? 4096 : draw(draw(4) == 0 ? 1 << 20 : 5000), .offset = -1, .first = first, .last = first + length};
        if (kind == 1 && i % 2 == 0)
            lives[i].first = i, lives[i].last = 2 * count - i;
    }
    return count;
}

static bool overlaps(const Life *a, const Life *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    return in_time && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static const char *fault(const Life *lives, int count, int64_t total)
{
    for (int i = 0; i < count; i++) {
        if (lives[i].offset < 0 || lives[i].offset % ALIGN != 0)
            return "a place is not aligned";
        if (lives[i].offset + lives[i].bytes > total)
            return "a life reaches beyond the total";
        for (int k = 0; k < i; k++)
            if (lives[i].bytes > 0 && lives[k].bytes > 0 && overlaps(&lives[i], &lives[k]))
                return "two lives overlap";
    }
    return total < lives_bound(lives, count) ? "the total is below the bound" : NULL;
}

int main(void)
{
    double sum = 0, worst = 1;
    for (int plan = 0; plan < PLANS; plan++) {
        Arena *arena = arena_new();
        Life lives[LIVES_MAX];
        int count = draw_lives(lives, plan % 3);
        int64_t total = lives_place(arena, lives, count), bound = lives_bound(lives, count);
        const char *what = fault(lives, count, total);
        if (what != NULL) {
            fprintf(stderr, "memory: plan %d: %s\n", plan, what);
            return 1;
        }
        double ratio = bound > 0 ? (double)total / (double)bound : 1;
        sum += ratio;
        worst = ratio > worst ? ratio : worst;
        arena_free(arena);
    }
    printf("memory: %d plans, %.4f of the bound on average, %.3f at worst\n", PLANS, sum / PLANS, worst);
    return sum / PLANS < 1.05 ? 0 : 1;      // the goal of the design, on average over lives worse than those of models
}
