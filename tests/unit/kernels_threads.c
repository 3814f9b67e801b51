// The thread pool: each part once, workers' numbers in range and never two at once with the same one, runs one after
// the other from idle and from spinning, pools of 1 to 8 threads.
#define _GNU_SOURCE 1
#include "kernels.h"

#include "../../kernels/c/conv2d.h"
#include "../../runtime/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_PARTS = 1000 };

typedef struct Count {
    int parts, threads;
    int done[MOST_PARTS];  // plain: a race would be a mistake of the pool
    long scratch[8];
    _Atomic int busy[8];
    _Atomic int mistakes;
} Count;

static void count_part(void *context, int part, int worker)
{
    Count *count = context;
    if (part < 0 || part >= count->parts || worker < 0 || worker >= count->threads) {
        count->mistakes++;
        return;
    }
    if (count->busy[worker]++)
        count->mistakes++;
    count->done[part]++;
    count->scratch[worker]++;
    count->busy[worker]--;
}

// Runs `parts` parts `times` times; 1 if each part was done each time.
static int run_times(MlrtPool *pool, Count *count, int parts, int times)
{
    memset(count, 0, sizeof *count);
    count->parts = parts;
    count->threads = mlrt_pool_threads(pool);
    for (int i = 0; i < times; i++) {
        mlrt_pool_run(pool, count_part, count, parts);
        for (int p = 0; p < parts; p++)
            if (count->done[p] != i + 1)
                return 0;
    }
    long total = 0;
    for (int i = 0; i < 8; i++)
        total += count->scratch[i];
    return total == (long)parts * times && count->mistakes == 0;
}

static void test_pool(int threads)
{
    static const int parts[] = {0, 1, 2, 3, 16, 333, MOST_PARTS};
    static Count count;
    MlrtPool *pool = mlrt_pool_new(threads);
    if (!check(pool != NULL, "a pool"))
        return;
    check(mlrt_pool_threads(pool) == (threads < 1 ? 1 : threads), "the pool's number of threads");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        check(run_times(pool, &count, parts[i], 50), "each part once");
    for (int i = 0; i < 5; i++) {
        usleep(3000);  // the workers fall asleep
        check(run_times(pool, &count, 5, 3), "each part once after sleeping");
    }
    mlrt_pool_free(pool);
}

// A part that waits for another one shows that two threads really run at once.
static void meet(void *context, int part, int worker)
{
    (void)worker;
    _Atomic int *arrived = context;
    atomic_fetch_or(arrived, 1 << part);
    for (int i = 0; i < 5000 && atomic_load(arrived) != 3; i++)
        usleep(1000);
}

static void test_together(void)
{
    MlrtPool *pool = mlrt_pool_new(2);
    if (!check(pool != NULL, "a pool of two"))
        return;
    _Atomic int arrived = 0;
    mlrt_pool_run(pool, meet, &arrived, 2);
    check(arrived == 3, "two parts at once");
    mlrt_pool_free(pool);
}

// A layer's product and a convolution in fixed parts, each worker with a scratch area of its own.
typedef struct Layer {
    MlkConv2d conv;
    float *x, *weight, *y, *c, *scratch[8];
} Layer;

enum { PARTS = 16 };

static void layer_part(void *context, int part, int worker)
{
    Layer *l = context;
    mlk_conv2d(&l->conv, l->x, l->weight, NULL, l->y, l->scratch[worker], part, PARTS);
    mlk_gemm_nt(30, 180, 72, l->x, 72, 1, l->weight, 9, l->c, 180, NULL, 0, l->scratch[worker], part, PARTS);
}

static void test_same_bits(void)
{
    enum { C_SIZE = 30 * 180 };
    Layer l = {.conv = {3, 8, 12, 11, 24, 12, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1}};
    int64_t y_size = 3 * 24 * 12 * 11;
    l.x = take_random(3 * 8 * 12 * 11), l.weight = take_random(24 * 8 * 9);
    l.y = take_unset(y_size), l.c = take_unset(C_SIZE);
    for (int i = 0; i < 8; i++)
        l.scratch[i] = take_unset(mlk_conv2d_scratch(&l.conv) + MLK_GEMM_SCRATCH);
    float *first_y = NULL, *first_c = NULL;
    for (int threads = 1; threads <= 8; threads *= 2) {
        MlrtPool *pool = mlrt_pool_new(threads);
        if (!check(pool != NULL, "a pool for the layer"))
            return;
        for (int i = 0; i < 5; i++)
            mlrt_pool_run(pool, layer_part, &l, PARTS);
        mlrt_pool_free(pool);
        if (!first_y)
            first_y = take_copy(l.y, y_size), first_c = take_copy(l.c, C_SIZE);
        check(same_bits(first_y, l.y, y_size) && same_bits(first_c, l.c, C_SIZE), "threads change bits");
    }
    free(l.x), free(l.weight), free(l.y), free(l.c), free(first_y), free(first_c);
    for (int i = 0; i < 8; i++)
        free(l.scratch[i]);
}

static void test_available(void)
{
    int all = mlrt_threads_available();
    check(all >= 1 && all <= sysconf(_SC_NPROCESSORS_CONF), "threads available");
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
            break;
        }
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        check(mlrt_threads_available() == 1, "one processor in the mask");
    sched_setaffinity(0, sizeof before, &before);
}

int main(void)
{
    for (int threads = 0; threads <= 8; threads++)
        test_pool(threads);
    test_together();
    test_same_bits();
    test_available();
    mlrt_pool_free(NULL);
    return check_summary();
}
