/* The host threads of a run, and who looks at the clock meanwhile. */
#include "run.h"
#include "../base/memory.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

typedef struct crew {
    gm_worker *workers;
    pthread_t *threads;
    int count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int busy;
} crew;

typedef struct member {
    crew *all;
    gm_worker *worker;
} member;

static void *work(void *context)
{
    member *self = context;
    gm_worker_run(self->worker);
    pthread_mutex_lock(&self->all->mutex);
    self->all->busy--;
    pthread_cond_signal(&self->all->changed);
    pthread_mutex_unlock(&self->all->mutex);
    return NULL;
}

double gm_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits for the workers, looking at the clock and for interrupts every few milliseconds. */
static void oversee(crew *all, gm_run *run)
{
    const gm_lens_launch *l = run->launch;
    pthread_mutex_lock(&all->mutex);
    while (all->busy) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += 5000000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&all->changed, &all->mutex, &t) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&all->mutex);
        if (gm_now() > run->until)
            gm_stop(run, GM_LENS_LIMIT, "the kernel took more than its limit of time");
        if (l->interrupted && l->interrupted(l->context))
            gm_stop(run, GM_LENS_INTERRUPTED, "by the caller");
        pthread_mutex_lock(&all->mutex);
    }
    pthread_mutex_unlock(&all->mutex);
}

gm_status gm_execute(gm_run *run, gm_worker *workers, int count, gm_failure *failure)
{
    crew all = {.workers = workers, .count = count, .busy = count};
    member *members = gm_alloc((size_t)count * sizeof *members);
    all.threads = gm_alloc((size_t)count * sizeof *all.threads);
    gm_status status = GM_OK;
    int started = 0;
    if (!members || !all.threads) {
        gm_free(members);
        gm_free(all.threads);
        return gm_fail(failure, GM_NO_MEMORY, "threads");
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&all.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&all.mutex, NULL);
    for (; started < count; started++) {
        members[started] = (member){&all, &workers[started]};
        if (pthread_create(&all.threads[started], NULL, work, &members[started]))
            break;
    }
    pthread_mutex_lock(&all.mutex);
    all.busy -= count - started; /* fewer threads do the same work */
    pthread_mutex_unlock(&all.mutex);
    if (started == 0)
        status = gm_fail(failure, GM_NO_MEMORY, "a thread");
    oversee(&all, run);
    for (int i = 0; i < started; i++)
        pthread_join(all.threads[i], NULL);
    pthread_cond_destroy(&all.changed);
    pthread_mutex_destroy(&all.mutex);
    gm_free(members);
    gm_free(all.threads);
    return status;
}
