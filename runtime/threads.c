// The thread pool: idle workers watch one word, spin for a moment, then sleep.
//
// That word is the ticket: the run's number above, how many of its parts are still to be taken below. Whoever lowers it
// by 1 with a compare-and-swap has taken a part of the run it read; a worker that wakes up late finds nothing left, or
// the swap fails, so the caller waits only for parts that were taken and never for a thread that the system has not let
// run yet. Threads spin only briefly, so a machine with other work loses little; OpenMP's runtimes spin for long and
// slow down tenfold there.
#define _GNU_SOURCE 1
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 2000 };  // 20 to 100 microseconds

typedef void Work(void *context, int part, int worker);

typedef struct Worker {
    MlrtPool *pool;
    int number;
    pthread_t thread;
} Worker;

struct MlrtPool {
    int threads;
    int started;               // threads to join: workers 1..started

    _Atomic uint64_t ticket;   // run number << 32 | parts to be taken
    Work *_Atomic work;        // what the run does: written before the ticket, unchanged until its last part is done
    void *_Atomic context;
    _Atomic int parts;
    _Atomic int left;          // parts that are not done

    pthread_mutex_t mutex;     // only around sleeping and waking
    pthread_cond_t wake;       // there is a ticket, or the pool closes
    pthread_cond_t done;       // left has reached 0
    _Atomic int sleeping;      // workers that may need to be woken
    _Atomic int caller_sleeps;
    _Atomic int closing;
    Worker workers[];          // [0] is the caller of mlrt_pool_run
};

static void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// A change of state that sleepers wait for has been stored: wakes them, if there are any.
static void pool_signal(MlrtPool *pool, _Atomic int *sleepers, pthread_cond_t *condition)
{
    if (atomic_load(sleepers) == 0)
        return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(condition);
    pthread_mutex_unlock(&pool->mutex);
}

// Takes a part and does it. 0: there was none to take.
static int pool_do_part(MlrtPool *pool, int worker)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    while ((uint32_t)ticket != 0) {
        Work *work = atomic_load_explicit(&pool->work, memory_order_relaxed);
        void *context = atomic_load_explicit(&pool->context, memory_order_relaxed);
        int part = atomic_load_explicit(&pool->parts, memory_order_relaxed) - (int)(uint32_t)ticket;
        if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket - 1))
            continue;
        work(context, part, worker);
        if (atomic_fetch_sub(&pool->left, 1) == 1)
            pool_signal(pool, &pool->caller_sleeps, &pool->done);
        return 1;
    }
    return 0;
}

static int pool_has_work(MlrtPool *pool)
{
    return (uint32_t)atomic_load(&pool->ticket) != 0 || atomic_load(&pool->closing);
}

// Returns when there may be a part to take, or the pool closes.
static void worker_wait(MlrtPool *pool)
{
    for (int i = 0; i < SPINS; i++) {
        if (pool_has_work(pool))
            return;
        spin_pause();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleeping, 1);
    while (!pool_has_work(pool))
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleeping, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    Worker *worker = argument;
    MlrtPool *pool = worker->pool;
    while (!atomic_load(&pool->closing)) {
        worker_wait(pool);
        while (pool_do_part(pool, worker->number))
            ;
    }
    return NULL;
}

// The caller has no part to take any more; others may still be busy with theirs.
static void caller_wait(MlrtPool *pool)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->left) == 0)
            return;
        spin_pause();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_sleeps, 1);
    while (atomic_load(&pool->left) != 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->caller_sleeps, 0);
    pthread_mutex_unlock(&pool->mutex);
}

void mlrt_pool_run(MlrtPool *pool, void (*work)(void *context, int part, int worker), void *context, int parts)
{
    if (pool->threads == 1 || parts == 1) {
        for (int part = 0; part < parts; part++)
            work(context, part, 0);
        return;
    }
    if (parts <= 0)
        return;
    atomic_store_explicit(&pool->work, work, memory_order_relaxed);
    atomic_store_explicit(&pool->context, context, memory_order_relaxed);
    atomic_store_explicit(&pool->parts, parts, memory_order_relaxed);
    atomic_store(&pool->left, parts);
    uint64_t run = (atomic_load(&pool->ticket) >> 32) + 1;
    atomic_store(&pool->ticket, run << 32 | (uint32_t)parts);
    pool_signal(pool, &pool->sleeping, &pool->wake);
    while (pool_do_part(pool, 0))
        ;
    caller_wait(pool);
}

// Signals are left to the threads that the program made itself: the workers start with all of them blocked.
static int pool_start(MlrtPool *pool)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    for (int i = 1; i < pool->threads && !error; i++) {
        pool->workers[i] = (Worker){.pool = pool, .number = i};
        error = pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]);
        pool->started += !error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

MlrtPool *mlrt_pool_new(int threads)
{
    if (threads < 1)
        threads = 1;
    MlrtPool *pool = calloc(1, sizeof *pool + (size_t)threads * sizeof pool->workers[0]);
    if (!pool)
        return NULL;
    pool->threads = threads;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    if (pool_start(pool) != 0) {
        mlrt_pool_free(pool);
        return NULL;
    }
    return pool;
}

int mlrt_pool_threads(const MlrtPool *pool) { return pool->threads; }

void mlrt_pool_free(MlrtPool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->closing, 1);
    pool_signal(pool, &pool->sleeping, &pool->wake);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

// Processors in the affinity mask. The mask is as long as the kernel's, which may exceed the fixed cpu_set_t.
static int affinity_count(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            return 1;
        size_t size = CPU_ALLOC_SIZE(cpus);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

// Reads a small file of the system to text. 0 if there is none.
static int read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = 0;
    return n > 0;
}

// One number of a control group's file, after `skip` other words. 0 if there is none ("max" is not a number).
static long long group_number(const char *folder, const char *name, int skip)
{
    char path[1200], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!read_text(path, text, sizeof text))
        return 0;
    const char *at = text;
    for (; skip > 0; skip--) {
        at += strcspn(at, " \n");
        at += strspn(at, " \n");
    }
    return strtoll(at, NULL, 10);
}

// The smaller of `limit` and what one folder of a control group grants, rounded up to whole processors.
static int limit_by_folder(int limit, const char *folder)
{
    long long quota = group_number(folder, "cpu.max", 0), period = group_number(folder, "cpu.max", 1);
    if (quota <= 0) {
        quota = group_number(folder, "cpu.cfs_quota_us", 0);
        period = group_number(folder, "cpu.cfs_period_us", 0);
    }
    if (quota <= 0 || period <= 0 || quota / period >= limit)
        return limit;
    return (int)(quota / period) + (quota % period != 0);
}

// The smaller of `limit` and the quota of a group and all groups above it. Inside a container the group's path may not
// exist below the mount point; then the mount point itself, which ends the walk, is the container's group.
static int limit_by_group(int limit, const char *mount, const char *group)
{
    char folder[1024];
    size_t root = strlen(mount);
    int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder)
        return limit;
    for (char *end = folder + length; (size_t)(end - folder) >= root; end--)
        if (*end == 0 || *end == '/') {
            *end = 0;
            limit = limit_by_folder(limit, folder);
        }
    return limit;
}

// 1 if the comma-separated list of controllers has `cpu`.
static int has_cpu(const char *list)
{
    for (; *list; list += *list == ',') {
        size_t length = strcspn(list, ",");
        if (length == 3 && memcmp(list, "cpu", 3) == 0)
            return 1;
        list += length;
    }
    return 0;
}

// Each line of /proc/self/cgroup is  number:controllers:/group;  version 2 has no controllers.
static int limit_by_line(int limit, char *line)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    if (!group)
        return limit;
    *group++ = 0;
    list++;
    if (*list == 0)
        return limit_by_group(limit, "/sys/fs/cgroup", group);
    if (!has_cpu(list))
        return limit;
    limit = limit_by_group(limit, "/sys/fs/cgroup/cpu", group);
    return limit_by_group(limit, "/sys/fs/cgroup/cpu,cpuacct", group);
}

int mlrt_threads_available(void)
{
    char text[4096], *rest = NULL;
    int limit = affinity_count();
    if (!read_text("/proc/self/cgroup", text, sizeof text))
        return limit;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        limit = limit_by_line(limit, line);
    return limit;
}
