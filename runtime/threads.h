// A pool of threads that share out numbered parts of one piece of work.
//
// Results never depend on the number of threads: the caller cuts the work into parts by its shapes alone, and a part
// writes only what is its own. Threads take parts as they get free.
#ifndef MLRT_THREADS_H
#define MLRT_THREADS_H

typedef struct MlrtPool MlrtPool;

// A pool of `threads` (at least 1), the caller of mlrt_pool_run counted among them. NULL: no memory or no thread.
// The caller owns the pool.
MlrtPool *mlrt_pool_new(int threads);

// Calls work(context, part, worker) once for each part 0..parts-1 and returns when all are done. `worker` is
// 0..threads-1 and no two calls with the same worker overlap, so it chooses a scratch area. One run at a time for a
// pool; a run inside a run is a mistake. Allocates nothing.
void mlrt_pool_run(MlrtPool *pool, void (*work)(void *context, int part, int worker), void *context, int parts);

int mlrt_pool_threads(const MlrtPool *pool);

// Ends the threads. NULL is allowed.
void mlrt_pool_free(MlrtPool *pool);

// How many threads this process may keep busy: the affinity mask and the control group's processor quota (versions 1
// and 2), at least 1.
int mlrt_threads_available(void);

#endif
