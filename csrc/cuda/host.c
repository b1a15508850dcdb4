/* Movement between arrays in host memory, and sums of them, through a device. The arrays travel in pieces by pinned
 * buffers, so that the copy into one buffer, the transfer of another, the kernels and the way back are under way at
 * once. */
#include "backend.h"
#include "gpu.h"
#include "walk.h"
#include "../base/integers.h"
#include <pthread.h>
#include <stdlib.h>

enum { SLOTS = 2, PIECE = 8 << 20, UP = 0, DOWN = 1 };

typedef struct gm_slot {
    char *memory; /* PIECE bytes, pinned */
    CUevent done; /* behind its transfer */
    char *target; /* where on the host its bytes go when they have come down; NULL when it is free */
    int64_t bytes;
} gm_slot;

/* What a device keeps for such movements from the first one on: 32 MB of pinned memory, which takes long to get. */
typedef struct gm_staging {
    pthread_mutex_t busy; /* one movement at a time */
    const gm_gpu *gpu;    /* NULL until all the rest is there */
    CUstream stream[2];
    gm_slot slot[2][SLOTS];
    int next[2];
} gm_staging;

/* One movement. */
typedef struct gm_trip {
    gm_staging *staging;
    const gm_driver *driver;
    gm_host_copy copy;
    gm_failure *failure;
} gm_trip;

static gm_staging stagings[GM_MAX_GPUS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_mutexes(void)
{
    for (int i = 0; i < GM_MAX_GPUS; i++)
        pthread_mutex_init(&stagings[i].busy, NULL);
}

static gm_status make_slot(gm_slot *slot, const gm_driver *driver, gm_failure *failure)
{
    gm_status status = GM_OK;
    if (!slot->memory)
        status = GM_CU(driver, failure, cuMemHostAlloc, (void **)&slot->memory, PIECE, 0);
    if (status == GM_OK && !slot->done)
        status = GM_CU(driver, failure, cuEventCreate, &slot->done, CU_EVENT_DISABLE_TIMING);
    return status;
}

/* Goes on where an attempt before had to give up. */
static gm_status prepare(gm_staging *staging, const gm_gpu *gpu, gm_failure *failure)
{
    gm_status status = GM_OK;
    if (staging->gpu)
        return GM_OK;
    for (int way = 0; way < 2 && status == GM_OK; way++) {
        if (!staging->stream[way])
            status = GM_CU(gpu->driver, failure, cuStreamCreate, &staging->stream[way], CU_STREAM_NON_BLOCKING);
        for (int i = 0; i < SLOTS && status == GM_OK; i++)
            status = make_slot(&staging->slot[way][i], gpu->driver, failure);
    }
    if (status == GM_OK)
        staging->gpu = gpu;
    return status;
}

/* Waits until the slot's transfer has happened, and takes what came down out of it. */
static gm_status empty_slot(const gm_trip *trip, gm_slot *slot)
{
    gm_status status = GM_CU(trip->driver, trip->failure, cuEventSynchronize, slot->done);
    if (status == GM_OK && slot->target)
        status = trip->copy.function(trip->copy.context, slot->target, slot->memory, slot->bytes);
    if (status == GM_NO_MEMORY)
        trip->failure->status = status;
    slot->target = NULL;
    return status;
}

/* Between `host` and the device, in pieces, on the stream of that way. */
static gm_status transfer(const gm_trip *trip, int way, char *host, CUdeviceptr device, int64_t bytes)
{
    gm_staging *staging = trip->staging;
    CUstream stream = staging->stream[way];
    gm_status status = GM_OK;

    for (int64_t at = 0; at < bytes && status == GM_OK; at += PIECE) {
        gm_slot *slot = &staging->slot[way][staging->next[way]++ % SLOTS];
        int64_t n = gm_least(bytes - at, PIECE);
        CUdeviceptr pinned = (CUdeviceptr)(uintptr_t)slot->memory, there = device + (CUdeviceptr)at;

        status = empty_slot(trip, slot);
        if (status == GM_OK && way == UP)
            status = trip->copy.function(trip->copy.context, slot->memory, host + at, n);
        if (status == GM_OK)
            status = GM_CU(trip->driver, trip->failure, cuMemcpyAsync, way == UP ? there : pinned,
                           way == UP ? pinned : there, (size_t)n, stream);
        if (status == GM_OK && way == DOWN) {
            slot->target = host + at;
            slot->bytes = n;
        }
        if (status == GM_OK)
            status = GM_CU(trip->driver, trip->failure, cuEventRecord, slot->done, stream);
    }
    return status;
}

/* What comes down from now on waits for what has gone up and been worked on. */
static gm_status turn(const gm_trip *trip)
{
    const gm_staging *staging = trip->staging;
    return gm_cuda_order(staging->gpu->ordinal, staging->stream[UP], staging->stream[DOWN], trip->failure);
}

static gm_status finish(const gm_trip *trip)
{
    gm_status status = GM_OK;
    for (int i = 0; i < SLOTS && status == GM_OK; i++)
        status = empty_slot(trip, &trip->staging->slot[DOWN][trip->staging->next[DOWN]++ % SLOTS]);
    return status;
}

/* How a plan is cut into slabs: along the axis with the longest step in the source, whose slabs are one run each. */
typedef struct gm_cut {
    int axis;
    int64_t each;       /* indices in a slab */
    int64_t first, run; /* bytes from the source to its lowest item; those that one index spans */
    int64_t span;       /* those that all of it spans */
} gm_cut;

static gm_cut cut_plan(const gm_plan *plan)
{
    gm_reach reach = gm_reach_of(plan);
    gm_cut cut = {.first = plan->src_start + reach.low, .span = reach.high - reach.low};

    if (plan->naxes == 0)
        return cut;
    for (int i = 0; i < plan->naxes; i++)
        if (llabs(plan->axis[i].src) > llabs(plan->axis[cut.axis].src))
            cut.axis = i;
    const gm_axis *axis = &plan->axis[cut.axis];
    int64_t step = llabs(axis->src);
    cut.run = cut.span - step * (axis->len - 1);
    /* Where one index reaches into the next, slabs would be sent twice. */
    cut.each = cut.run > step ? axis->len : gm_most(1, PIECE / step);
    return cut;
}

/* `count` indices of the cut's axis from `at` on. */
static gm_plan slab_of(const gm_plan *plan, const gm_cut *cut, int64_t at, int64_t count)
{
    int64_t shape[GM_MAX_NDIM], src[GM_MAX_NDIM], dst[GM_MAX_NDIM];
    gm_plan slab;

    for (int i = 0; i < plan->naxes; i++) {
        shape[i] = i == cut->axis ? count : plan->axis[i].len;
        src[i] = plan->axis[i].src;
        dst[i] = plan->axis[i].dst;
    }
    gm_plan_make(&slab, plan->item, plan->naxes, shape, src, dst);
    slab.src_start += plan->src_start + at * plan->axis[cut->axis].src - cut->first;
    slab.dst_start += at * plan->axis[cut->axis].dst;
    return slab;
}

static gm_status travel(const gm_trip *trip, const gm_plan *plan, const gm_cut *cut, char *dst, const char *src,
                        CUdeviceptr to, CUdeviceptr from, gm_stage_id stage)
{
    const gm_staging *staging = trip->staging;
    const gm_axis *axis = &plan->axis[cut->axis];
    int64_t step = llabs(axis->src);
    int at_once = cut->axis == 0; /* a slab is one run of the destination too, and goes back as soon as it is done */
    gm_status status = GM_OK;

    for (int64_t at = 0; at < axis->len && status == GM_OK; at += cut->each) {
        int64_t count = gm_least(axis->len - at, cut->each);
        int64_t low = step * (axis->src < 0 ? axis->len - at - count : at), bytes = step * (count - 1) + cut->run;
        gm_plan slab = slab_of(plan, cut, at, count);

        status = transfer(trip, UP, (char *)src + cut->first + low, from + (CUdeviceptr)low, bytes);
        if (status == GM_OK)
            status = gm_cuda_move(staging->gpu->ordinal, staging->stream[UP], &slab, (char *)(uintptr_t)to,
                                  (const char *)(uintptr_t)from, stage, trip->failure);
        if (status == GM_OK && at_once && (status = turn(trip)) == GM_OK)
            status = transfer(trip, DOWN, dst + plan->dst_start + at * axis->dst, to + (CUdeviceptr)(at * axis->dst),
                              count * axis->dst);
    }
    if (status == GM_OK && !at_once && (status = turn(trip)) == GM_OK)
        status = transfer(trip, DOWN, dst + plan->dst_start, to, plan->items * plan->item);
    return status == GM_OK ? finish(trip) : status;
}

/* A run is an axis of bytes: there must be one to cut. */
static gm_plan with_an_axis(const gm_plan *plan)
{
    gm_plan made = *plan;
    if (made.naxes == 0) {
        made.axis[0] = (gm_axis){made.item, 1, 1};
        made.item = made.naxes = 1;
        made.items = made.axis[0].len;
    }
    return made;
}

/* What a visit to the device is for. */
typedef struct gm_errand {
    const gm_plan *plan;
    char *dst;
    const char *src;
    gm_stage_id stage;
    int64_t bytes; /* of the results */
    gm_dtype to, from;
} gm_errand;

typedef gm_status gm_errand_fn(const gm_trip *trip, const gm_errand *errand, const gm_cut *cut, CUdeviceptr to,
                               CUdeviceptr from);

static gm_status move(const gm_trip *trip, const gm_errand *errand, const gm_cut *cut, CUdeviceptr to, CUdeviceptr from)
{
    return travel(trip, errand->plan, cut, errand->dst, errand->src, to, from, errand->stage);
}

/* The results are few, or at least no more than the items: nothing is gained by sending them back one by one. */
static gm_status sum(const gm_trip *trip, const gm_errand *errand, const gm_cut *cut, CUdeviceptr to, CUdeviceptr from)
{
    const gm_staging *staging = trip->staging;

    gm_status status = transfer(trip, UP, (char *)errand->src + cut->first, from, cut->span);
    if (status == GM_OK)
        status = gm_cuda_sum(staging->gpu->ordinal, staging->stream[UP], errand->plan, (char *)(uintptr_t)to,
                             errand->to, (const char *)(uintptr_t)from - cut->first, errand->from, trip->failure);
    if (status == GM_OK)
        status = turn(trip);
    if (status == GM_OK)
        status = transfer(trip, DOWN, errand->dst, to, errand->bytes);
    return status == GM_OK ? finish(trip) : status;
}

static gm_status visit_device(gm_trip *trip, const gm_errand *errand, gm_errand_fn *work)
{
    const gm_staging *staging = trip->staging;
    int device = staging->gpu->ordinal;
    gm_cut cut = cut_plan(errand->plan);
    void *to = NULL, *from = NULL;
    gm_failure ignored;

    gm_status status = gm_cuda_alloc(device, staging->stream[UP], errand->bytes, &to, trip->failure);
    if (status == GM_OK)
        status = gm_cuda_alloc(device, staging->stream[UP], cut.span, &from, trip->failure);
    if (status == GM_OK)
        status = work(trip, errand, &cut, (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from);
    if (status != GM_OK) {
        /* A slot may have no event behind its last transfer: whoever takes it next could not wait for that. */
        gm_cuda_wait(device, staging->stream[UP], &ignored);
        gm_cuda_wait(device, staging->stream[DOWN], &ignored);
        for (int i = 0; i < SLOTS; i++)
            trip->staging->slot[DOWN][i].target = NULL;
    }
    gm_cuda_free(device, staging->stream[UP], from);
    gm_cuda_free(device, staging->stream[UP], to);
    return status;
}

static gm_status run_errand(int device, const gm_errand *errand, gm_errand_fn *work, gm_host_copy copy,
                            gm_failure *failure)
{
    /* Memory and streams of our own may be made while another thread captures a graph, if we say that we know. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gm_visit visit;

    const gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_trip trip = {&stagings[device], gpu->driver, copy, failure};
    pthread_once(&once, make_mutexes);
    pthread_mutex_lock(&trip.staging->busy);
    gpu->driver->cuThreadExchangeStreamCaptureMode(&mode);
    gm_status status = prepare(trip.staging, gpu, failure);
    if (status == GM_OK)
        status = visit_device(&trip, errand, work);
    gpu->driver->cuThreadExchangeStreamCaptureMode(&mode);
    pthread_mutex_unlock(&trip.staging->busy);
    gm_visit_end(&visit);
    return status;
}

gm_status gm_cuda_move_host(int device, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                            gm_host_copy copy, gm_failure *failure)
{
    gm_plan cut = with_an_axis(plan);
    gm_errand errand = {.plan = &cut, .dst = dst, .src = src, .stage = stage, .bytes = plan->items * plan->item};

    return run_errand(device, &errand, move, copy, failure);
}

gm_status gm_cuda_sum_host(int device, const gm_plan *plan, char *dst, int64_t bytes, gm_dtype to, const char *src,
                           gm_dtype from, gm_host_copy copy, gm_failure *failure)
{
    gm_errand errand = {.plan = plan, .dst = dst, .src = src, .bytes = bytes, .to = to, .from = from};

    return run_errand(device, &errand, sum, copy, failure);
}
