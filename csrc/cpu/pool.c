#include "pool.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

enum { MAX_WORKERS = 255, SPINS = 2000 };

/* One job at a time: whoever finds `owner` taken runs its parts alone, so callers never wait for one another. */
static struct {
    pthread_mutex_t owner; /* held by the caller whose job runs */
    pthread_mutex_t lock;  /* guards what the condition variables announce */
    pthread_cond_t work, done;
    int workers; /* threads started so far */
    atomic_uint generation;
    int open;           /* the present job still takes workers */
    atomic_int running; /* workers inside it */
    atomic_int waiting; /* its caller, for the last of them to leave */
    int parts;
    atomic_int next;
    void (*body)(void *ctx, int part);
    void *ctx;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void take_parts(void)
{
    for (int part; (part = atomic_fetch_add(&pool.next, 1)) < pool.parts;)
        pool.body(pool.ctx, part);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void *worker(void *seen_at_start)
{
    unsigned seen = (unsigned)(__UINTPTR_TYPE__)seen_at_start;
    for (;;) {
        /* A short spin catches calls in quick succession without a trip through the kernel. */
        for (int i = 0; i < SPINS && atomic_load_explicit(&pool.generation, memory_order_acquire) == seen; i++)
            relax();
        pthread_mutex_lock(&pool.lock);
        while (atomic_load(&pool.generation) == seen)
            pthread_cond_wait(&pool.work, &pool.lock);
        seen = atomic_load(&pool.generation);
        int joins = pool.open;
        pool.running += joins;
        pthread_mutex_unlock(&pool.lock);
        if (!joins)
            continue;

        take_parts();

        if (atomic_fetch_sub(&pool.running, 1) == 1 && atomic_load(&pool.waiting)) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.done);
            pthread_mutex_unlock(&pool.lock);
        }
    }
    return NULL;
}

/* The child of a fork has no workers, whatever the parent had; its first job starts new ones. */
static void forget_workers(void)
{
    pool.owner = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.workers = pool.open = 0;
    atomic_store(&pool.running, 0);
    atomic_store(&pool.waiting, 0);
}

static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, forget_workers);
}

static void start_workers(int wanted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_fork);

    /* Signals belong to the program's own threads. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.workers < wanted && pool.workers < MAX_WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, (void *)(__UINTPTR_TYPE__)atomic_load(&pool.generation)) != 0)
            break; /* no more threads to be had: the ones there are do all the parts */
        pthread_detach(thread);
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void gm_parallel(int parts, void (*body)(void *ctx, int part), void *ctx)
{
    if (parts <= 1 || pthread_mutex_trylock(&pool.owner) != 0) {
        for (int part = 0; part < parts; part++)
            body(ctx, part);
        return;
    }
    if (pool.workers < parts - 1)
        start_workers(parts - 1);

    pthread_mutex_lock(&pool.lock);
    pool.body = body;
    pool.ctx = ctx;
    pool.parts = parts;
    pool.open = 1;
    atomic_store(&pool.next, 0);
    pthread_cond_broadcast(&pool.work);
    atomic_fetch_add(&pool.generation, 1); /* last: whoever spins finds the lock all but free */
    pthread_mutex_unlock(&pool.lock);

    take_parts();

    /* Every worker that took part must have left before ctx goes out of scope. One that comes too late
     * is not waited for: on a busy machine that would take a whole turn of the scheduler. */
    pthread_mutex_lock(&pool.lock);
    pool.open = 0;
    pthread_mutex_unlock(&pool.lock);
    /* Most leave within microseconds, less than it takes to sleep and be woken. */
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool.running, memory_order_acquire) > 0; i++)
        relax();
    if (atomic_load(&pool.running) > 0) {
        pthread_mutex_lock(&pool.lock);
        atomic_store(&pool.waiting, 1);
        while (atomic_load(&pool.running) > 0)
            pthread_cond_wait(&pool.done, &pool.lock);
        atomic_store(&pool.waiting, 0);
        pthread_mutex_unlock(&pool.lock);
    }
    pthread_mutex_unlock(&pool.owner);
}
