/* The host back end: executes plans on host memory. Knows nothing of Python; holds no global state of its own but the
 * thread pool (pool.c). Every function may be called without the GIL and from many threads at once. */
#pragma once
#include "../base/dtype.h"
#include "../base/plan.h"
#include "../base/stages.h"
#include "../base/status.h"

/* What the machine offers and the user asked for; made once, then only read (threads: atomically). */
typedef struct gm_cpu {
    const struct gm_isa *isa;
    _Atomic int threads;
    int64_t l1_bytes, l2_bytes,
        l3_bytes;    /* data caches: of a core, of a core, the last level as this process sees it */
    int reads_pages; /* whether memory is read faster a page of 4 KB at a time than in several runs side by side */
} gm_cpu;

/* Whether results of so many bytes are written past the caches. Fewer are better left in the last one, of which they
 * may take `kept` bytes: whoever asked for them reads them next. A large one is shared by many cores and hardly faster
 * than memory. Measured with 260 MB: results of 6 MB and more went past it at 1.4 to 2.5 times the speed with caches
 * empty before and at 1 to 1.5 times it with everything in them; with a reading of the results, at 0.7 to 1 of it up to
 * 14 MB, at 0.9 to 1.5 from 28 MB on. */
static inline int gm_goes_past(int64_t bytes, int64_t kept)
{
    enum { MOST_KEPT = 15 << 20 }; /* no power of two, on whose two sides a size and its neighbours would lie */
    return bytes > kept || bytes > MOST_KEPT;
}

/* Fills in `cpu`: `isa` by name, or the best one that runs here when NULL or empty; `threads` or, when it is not
 * positive, as many as the affinity mask allows. Returns 0 if no such ISA variant runs here. */
int gm_cpu_init(gm_cpu *cpu, const char *isa, int threads);

/* The signature of every movement stage: dst[plan] = src[plan]. src and dst do not overlap. */
typedef gm_status gm_move_fn(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src);

/* The signature of every sum stage. Axes with dst == 0 are summed; the rest name the results, each written once.
 * Accumulates as sum.h says and converts to `to` at the end. plan->items > 0. */
typedef gm_status gm_sum_fn(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                            gm_dtype from);

/* The CPU's rows of the stage table; the other devices' kernels are no functions of C. */
#define GM_STAGE(lesson, stage, device, kernel, idea, bytes) GM_DECLARE_##device(lesson, kernel)
#define GM_DECLARE_CPU(lesson, kernel)                       GM_STAGE_FN_##lesson kernel;
#define GM_DECLARE_CUDA(lesson, kernel)
#define GM_STAGE_FN_copy      gm_move_fn
#define GM_STAGE_FN_transpose gm_move_fn
#define GM_STAGE_FN_reduce    gm_sum_fn
#include "../base/stages.def"
#undef GM_STAGE
#undef GM_DECLARE_CPU
#undef GM_DECLARE_CUDA

/* The stage's function, cast to the signature of its lesson. */
gm_move_fn *gm_cpu_move_stage(gm_stage_id id);
gm_sum_fn *gm_cpu_sum_stage(gm_stage_id id);

/* Swaps axes a and b of equal length inside one array. The view must not overlap itself. */
gm_status gm_cpu_swap_axes(const gm_cpu *cpu, const gm_array *array, int a, int b);

/* One field of a record and the plane (its own array) that it is gathered into or scattered from. */
typedef struct gm_field {
    int64_t size;         /* bytes */
    int64_t offset;       /* within a record */
    char *plane;          /* item 0 */
    int64_t plane_stride; /* bytes */
} gm_field;

/* AoS -> SoA and back: n records, `stride` bytes apart, against the planes of `nfields` fields. */
gm_status gm_cpu_gather_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, const char *records, int64_t n,
                               int64_t stride);
gm_status gm_cpu_scatter_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, char *records, int64_t n,
                                int64_t stride);
