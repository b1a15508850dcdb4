/* simd and tuned: sums piece by piece (sum_job.h), and adds up what the pieces give. */
#include "../base/integers.h"
#include "sum.h"
#include "../base/memory.h"
#include "isa.h"
#include "pool.h"
#include "sum_job.h"
#include "tile.h"
#include <string.h>

enum {
    SMALL = 2048,              /* accumulators that the C stack gives */
    WORTH_THREADS = 512 << 10, /* bytes */
    WORTH_JOINING = 64 << 10,  /* accumulators */
};

/* The type that an accumulator of `from` is. */
static gm_dtype acc_type(gm_dtype from)
{
    char kind = gm_dtype_get(from)->kind;
    return kind == 'c' ? GM_complex128 : kind == 'f' ? GM_float64 : GM_uint64;
}

static void add(const gm_sum_job *job, gm_acc *restrict to, const gm_acc *restrict from, int64_t n)
{
    if (acc_type(job->from) == GM_uint64)
        for (int64_t i = 0; i < n; i++)
            to[i].i += from[i].i;
    else
        for (int64_t i = 0; i < n; i++)
            to[i].f += from[i].f;
}

/* ---- a piece ---- */

/* Gathers n x m items, `outer` and `inner` bytes apart, into a dense tile. */
#define GATHER(bytes)                                                                                                  \
    static void gather_##bytes(char *tile, const char *src, int64_t n, int64_t outer, int64_t m, int64_t inner)        \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (int64_t j = 0; j < m; j++, tile += bytes)                                                             \
                memcpy(tile, src + i * outer + j * inner, bytes);                                                      \
    }
GATHER(1)
GATHER(2)
GATHER(4)
GATHER(8)
GATHER(16)

static void gather(int64_t size, char *tile, const char *src, int64_t n, int64_t outer, int64_t m, int64_t inner)
{
    static void (*const by_size[])(char *, const char *, int64_t, int64_t, int64_t, int64_t) = {
        [1] = gather_1, [2] = gather_2, [4] = gather_4, [8] = gather_8, [16] = gather_16};
    by_size[size](tile, src, n, outer, m, inner);
}

/* n rows of few columns. What does not fill a wide row is one of its own, and shorter: so the last row goes without its
 * gap, which may lie where the memory ends. */
static void fold(const gm_sum_job *job, gm_acc *out, const char *src, int64_t cols, int64_t n, const char *next,
                 gm_acc *wide)
{
    gm_sum_cols_fn *kernel = job->kernels->cols[job->from];
    int64_t row = job->row_gap * job->parts, width = job->join * row, step = job->join * job->row_gap * job->size;
    int64_t joined = (n - (row > cols)) / job->join, left = n - joined * job->join;
    gm_acc *rest = wide + width;

    if (joined)
        kernel(wide, src, step, joined, width, next);
    else
        for (int64_t i = 0; i < width; i++)
            wide[i] = gm_sum_zero(job->from);
    if (left) {
        kernel(rest, src + joined * step, 0, 1, (left - 1) * row + cols, NULL);
        add(job, wide, rest, (left - 1) * row + cols);
    }
    for (int64_t half = job->join / 2; half > 0; half /= 2)
        add(job, wide, wide + half * row, half * row);
    memcpy(out, wide, (size_t)cols * sizeof *out);
}

/* Sums `across` x `along` items at src into as many results as are across. The next piece begins at `next`, if it is
 * known; `work` is room for tiles. */
static void piece(const gm_sum_job *job, gm_acc *out, const char *src, int64_t across, int64_t along, const char *next,
                  gm_acc *work)
{
    gm_sum_rows_fn *rows = job->kernels->rows[job->from];
    gm_sum_cols_fn *columns = job->kernels->cols[job->from];
    int64_t cols = ((across - 1) * job->col_gap + 1) * job->parts;
    char *tile = (char *)work;

    switch (job->form) {
    case GM_SUM_RUN:
        rows(out, src, job->across.src, across, along);
        break;
    case GM_SUM_COLUMNS:
        columns(out, src, job->along.src, along, cols, next);
        break;
    case GM_SUM_FOLD:
        fold(job, out, src, cols, along, next, work);
        break;
    case GM_SUM_PACK_RUN:
        gather(job->size, tile, src, across, job->across.src, along, job->along.src);
        rows(out, tile, along * job->size, across, along);
        break;
    case GM_SUM_PACK_COLUMNS:
        gather(job->size, tile, src, along, job->along.src, across, job->across.src);
        columns(out, tile, across * job->size, along, across * job->parts, NULL);
        break;
    }
}

/* ---- a group of results ---- */

static int64_t src_offset(const gm_axis *axis, int n, int64_t index)
{
    int64_t offset = 0;
    for (int i = n - 1; i >= 0 && index > 0; index /= axis[i--].len)
        offset += index % axis[i].len * axis[i].src;
    return offset;
}

static int64_t dst_offset(const gm_axis *axis, int n, int64_t index)
{
    int64_t offset = 0;
    for (int i = n - 1; i >= 0 && index > 0; index /= axis[i--].len)
        offset += index % axis[i].len * axis[i].dst;
    return offset;
}

static int64_t group_src(const gm_sum_job *job, int64_t group)
{
    int64_t blocks = job->collapse ? 1 : job->across_blocks;
    return group % blocks * job->across_block * job->across.src + src_offset(job->kept, job->kept_axes, group / blocks);
}

/* How many results a group has: the last along an axis may have fewer. */
static int64_t group_len(const gm_sum_job *job, int64_t group)
{
    int64_t block = group % job->across_blocks;
    return job->collapse ? 1 : gm_least(job->across_block, job->across.len - block * job->across_block);
}

/* Sums n pieces of a group, from the first-th on, into `out`, pairwise: `out` is the bottom of a stack of sums, where
 * two that hold equally many pieces become one. Above the stack there is room for one piece more. */
static void sum_pieces(const gm_sum_job *job, gm_acc *out, int64_t group, int64_t first, int64_t n)
{
    const int64_t width = job->width;
    const char *src = job->src + group_src(job, group);
    gm_acc *top = out, *tile = out + job->work - job->tile;

    for (int64_t done = 0; done < n; done++, top += width) {
        int64_t index = first + done, across = group_len(job, group);
        int64_t along = index % job->along_blocks * job->along_block;
        index /= job->along_blocks;
        const char *p = src + along * job->along.src;
        if (job->collapse) {
            int64_t start = index % job->across_blocks * job->across_block;
            index /= job->across_blocks;
            across = gm_least(job->across_block, job->across.len - start);
            p += start * job->across.src;
        }
        p += src_offset(job->summed, job->summed_axes, index);
        /* The piece that follows is the rest of these columns, or the columns beside them. */
        const char *next = NULL;
        if (done + 1 < n && along + job->along_block < job->along.len)
            next = p + job->along_block * job->along.src;
        else if (done + 1 == n && job->slabs == 1 && group % job->across_blocks + 1 < job->across_blocks)
            next = src + job->across_block * job->across.src;
        piece(job, top, p, across, gm_least(job->along_block, job->along.len - along), next, tile);
        if (job->collapse)
            job->kernels->rows[acc_type(job->from)](top, (const char *)top, 0, 1, across);
        for (int64_t pairs = done; pairs & 1; pairs >>= 1, top -= width)
            add(job, top - width, top, width);
    }
    for (top -= width; top > out; top -= width)
        add(job, top - width, top, width);
}

static char *group_dst(const gm_sum_job *job, int64_t group)
{
    int64_t blocks = job->collapse ? 1 : job->across_blocks;
    return job->dst + group % blocks * job->across_block * job->across.dst +
           dst_offset(job->kept, job->kept_axes, group / blocks);
}

static void finish(const gm_sum_job *job, gm_acc *acc, int64_t group)
{
    int64_t n = group_len(job, group), gap = job->col_gap;
    char *dst = group_dst(job, group);

    if (gap > 1)
        for (int64_t i = 1; i < n; i++)
            memmove(acc + i * job->parts, acc + i * gap * job->parts, (size_t)job->parts * sizeof *acc);
    if (job->write)
        job->write(dst, acc, n * job->parts);
    else
        gm_sum_store(dst, job->across.dst, job->to, acc, n, job->from);
}

/* A few rows: results that are whole lines, made from whole lines, never meet the caches. The others, before and after
 * them, go through `work`. */
static void sum_past(const gm_sum_job *job, int64_t group, gm_acc *work)
{
    enum { LINE = 64 };
    const char *src = job->src + group_src(job, group);
    char *dst = group_dst(job, group);
    int64_t n = group_len(job, group), rows = job->along.len, step = job->along.src, per_line = LINE / job->size;
    int64_t result = job->across.dst, head = gm_least(n, (int64_t)(-(uintptr_t)dst % LINE) / result);
    int64_t lines = (n - head) / per_line * per_line, part[2][2] = {{0, head}, {head + lines, n - head - lines}};
    const char *next = group % job->across_blocks + 1 < job->across_blocks ? src + n * job->size : NULL;

    for (int i = 0; i < 2; i++)
        if (part[i][1]) {
            job->kernels->cols[job->from](work, src + part[i][0] * job->size, step, rows, part[i][1], NULL);
            job->write(dst + part[i][0] * result, work, part[i][1]);
        }
    if (lines)
        job->past(dst + head * result, src + head * job->size, step, rows, lines,
                  next ? next + head * job->size : NULL);
}

/* Rows of a few items, likewise. */
static void sum_few(const gm_sum_job *job, int64_t group, gm_acc *work)
{
    enum { LINE = 64 };
    const char *src = job->src + group_src(job, group);
    char *dst = group_dst(job, group);
    int64_t n = group_len(job, group), result = job->across.dst, step = job->across.src, items = job->along.len;
    int64_t head = gm_least(n, (int64_t)(-(uintptr_t)dst % LINE) / result);
    int64_t done = head + job->few(dst + head * result, src + head * step, step, n - head, items);
    int64_t part[2][2] = {{0, head}, {done, n - done}};

    for (int i = 0; i < 2; i++)
        if (part[i][1]) {
            job->kernels->rows[job->from](work, src + part[i][0] * step, step, part[i][1], items);
            job->write(dst + part[i][0] * result, work, part[i][1]);
        }
}

static void take_units(void *ctx, int thread)
{
    gm_sum_job *job = ctx;
    gm_acc *work = job->workspace + thread * job->work;

    for (int64_t unit; (unit = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->units;)
        if (job->slabs > 1) {
            int64_t first = unit % job->slabs * job->slab;
            sum_pieces(job, work, unit / job->slabs, first, gm_least(job->slab, job->pieces - first));
            memcpy(job->partial + unit * job->width, work, (size_t)job->width * sizeof *work);
        } else {
            int64_t end = gm_least(job->groups, (unit + 1) * job->unit);
            for (int64_t group = unit * job->unit; group < end; group++) {
                if (job->past) {
                    sum_past(job, group, work);
                    continue;
                }
                if (job->few) {
                    sum_few(job, group, work);
                    continue;
                }
                sum_pieces(job, work, group, 0, job->pieces);
                finish(job, work, group);
            }
        }
    job->fence();
}

/* Adds up the slabs of each group, pairwise: a thread takes a share of the columns. */
static void join_slabs(void *ctx, int thread)
{
    const gm_sum_job *job = ctx;
    int64_t first = thread * job->width / job->threads, n = (thread + 1) * job->width / job->threads - first;

    for (int64_t group = 0; group < job->groups; group++) {
        gm_acc *acc = job->partial + group * job->slabs * job->width + first;
        for (int64_t apart = 1; apart < job->slabs; apart *= 2)
            for (int64_t i = 0; i + apart < job->slabs; i += 2 * apart)
                add(job, acc + i * job->width, acc + (i + apart) * job->width, n);
    }
}

/* Whether results would only push the input out of the caches, and lie where they can be streamed. A third level far
 * larger than the second is that of many cores: what lies in it is slower to write than memory. */
static int goes_past(const gm_sum_job *job, const gm_cpu *cpu, int64_t size, int64_t part)
{
    int64_t large = gm_least(cpu->l3_bytes / 4, 8 * cpu->l2_bytes);
    uintptr_t address = (uintptr_t)job->dst;
    for (int i = 0; i < job->kept_axes; i++)
        address |= (uintptr_t)job->kept[i].dst;
    return job->groups * job->width * size >= large && address % (uintptr_t)part == 0;
}

/* The kernel that writes contiguous results, if there is one: past the caches those that would only push the input out
 * of them. */
static gm_sum_write_fn *write_for(const gm_sum_job *job, const gm_cpu *cpu)
{
    const gm_sum_kernels *kernels = job->kernels;
    int64_t bits = gm_dtype_get(job->to)->bits, size = bits / 8, part = size / job->parts;
    gm_dtype acc = acc_type(job->from);
    int is_float32 = acc == GM_complex128 ? job->to == GM_complex64 : acc == GM_float64 && job->to == GM_float32;
    int as_is = job->to == acc || (job->to == GM_int64 && acc == GM_uint64);

    if (job->across.dst != size)
        return NULL;
    if (acc == GM_float64 && size == 2)
        return job->to == GM_float16 ? kernels->narrow_float16 : kernels->narrow_bfloat16;
    if (!goes_past(job, cpu, size, part))
        return NULL;
    return is_float32 ? kernels->stream_float32 : as_is ? kernels->stream : NULL;
}

/* Kernels that go from a few items straight to results. */
static void choose_straight(gm_sum_job *job, const gm_cpu *cpu)
{
    const gm_sum_kernels *kernels = job->kernels;
    int halves = job->from == GM_float16 && job->write == kernels->narrow_float16 &&
                 job->along.len <= GM_SUM_FEW_HALVES && goes_past(job, cpu, job->size, job->size);
    int whole = !job->collapse && job->pieces == 1;
    int columns = whole && job->form == GM_SUM_COLUMNS && job->col_gap == 1 && job->along.len <= GM_SUM_FEW;

    job->past = columns && job->write && (halves || job->write == kernels->stream) ? kernels->past[job->from] : NULL;
    job->few = whole && job->form == GM_SUM_RUN && halves ? kernels->few_float16 : NULL;
}

static gm_status sum_with(const gm_cpu *cpu, int threads, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                          gm_dtype from)
{
    gm_sum_job job;
    gm_acc small[SMALL];
    gm_status status = gm_sum_check(from, to);
    if (status != GM_OK)
        return status;

    job.kernels = cpu->isa->sum;
    gm_sum_cut(&job, plan, dst, to, src, from);
    job.write = write_for(&job, cpu);
    choose_straight(&job, cpu);
    job.fence = cpu->isa->tile->fence;
    atomic_init(&job.next, 0);
    threads = job.bytes < WORTH_THREADS ? 1 : (int)gm_least(threads, job.units);

    size_t work = (size_t)(threads * job.work) * sizeof *small;
    size_t partial = job.slabs > 1 ? (size_t)(job.groups * job.slabs * job.width) * sizeof *small : 0;
    gm_acc *memory = work + partial <= sizeof small ? small : gm_alloc(work + partial);
    if (!memory)
        return GM_NO_MEMORY;
    job.workspace = memory;
    job.partial = memory + threads * job.work;

    gm_parallel(threads, take_units, &job);
    if (job.slabs > 1) {
        job.threads = job.groups * job.slabs * job.width < WORTH_JOINING ? 1 : threads;
        gm_parallel(job.threads, join_slabs, &job);
        for (int64_t group = 0; group < job.groups; group++)
            finish(&job, job.partial + group * job.slabs * job.width, group);
        job.fence();
    }
    if (memory != small)
        gm_free(memory);
    return GM_OK;
}

gm_status gm_sum_simd(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from)
{
    return sum_with(cpu, 1, plan, dst, to, src, from);
}

gm_status gm_sum_tuned(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from)
{
    return sum_with(cpu, atomic_load_explicit(&cpu->threads, memory_order_relaxed), plan, dst, to, src, from);
}
