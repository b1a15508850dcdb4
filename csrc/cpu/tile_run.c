/* Runs a plan block by block (tile_blocks.h) with an instruction set's micro-kernels (tile.h).
 *
 * Tried and lost, on one core of Zen 4 (copy 48 GB/s): panels of 4 KB of each row, read eight rows side by side into
 * the second cache and turned from there. They are read at 23 GB/s one way, where short rows come at 12, and runs of
 * 256 bytes leave at 41; but nothing overlaps any more. A bit reversal of floats moved 16.5 GB/s rather than 15, of
 * doubles as much as before, a 4-D reversal 15 rather than 22. What costs a bit reversal most is that arrays begin
 * inside a line: with both at a line's start, floats move at 20.
 *
 * Lines that go out between loads, one and one, take nearly twice as long as four and four: patterns of a float panel
 * alone, nothing turned, 0.55 and 0.87 of a copy. With all the work of a tile in it, nothing of one line hides behind
 * another: rows that begin inside lines cost a tenth to a sixth of the time, as what lines are put together from is
 * kept in memory, and runs that do half as much. Rows of floats loaded across lines (those of larger items are), or 16
 * bytes at a time, and runs put together on the way into the image, cost more. */
#include "tile_run.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include "isa.h"
#include "pool.h"
#include "tile.h"
#include "tile_blocks.h"
#include <stdatomic.h>
#include <string.h>

typedef struct job {
    const gm_tile_kernels *kernels;
    gm_strip_fn *strip;
    gm_panel_fn *panel; /* or NULL */
    gm_blocks blocks;
    int64_t tile_cols, chunk;
    int64_t lead[1 << GM_SPLITS]; /* columns that a panel of each shape fetches ahead */
    char *dst, *stage;
    const char *src;
    int64_t stage_bytes, carry_at, before_at, dense_at; /* of a thread; before_at, dense_at: or 0 */
    _Atomic int64_t next;
} job;

/* A place in the loops over blocks. */
typedef struct cursor {
    int64_t block, index[GM_MAX_NDIM];
    char *dst;
    const char *src;
    int which;
} cursor;

static int which_shape(const gm_blocks *b, const int64_t *index)
{
    int which = 0;
    for (int s = 0; s < GM_SPLITS; s++)
        if (b->split[s] >= 0 && index[b->split[s]] == b->axis[b->split[s]].steps - 1)
            which |= 1 << s;
    return which;
}

static void seek(const job *j, cursor *c, int64_t block)
{
    const gm_blocks *b = &j->blocks;
    c->block = block;
    c->dst = j->dst;
    c->src = j->src;
    for (int i = b->naxes - 1; i >= 0; i--) {
        const gm_block_axis *axis = &b->axis[i];
        c->index[i] = block % axis->steps;
        block /= axis->steps;
        c->dst += c->index[i] * axis->extent * axis->dst;
        c->src += c->index[i] * axis->extent * axis->src;
    }
    c->which = which_shape(b, c->index);
}

static void advance(const job *j, cursor *c)
{
    const gm_blocks *b = &j->blocks;
    c->block++;
    for (int i = b->naxes - 1; i >= 0; i--) {
        const gm_block_axis *axis = &b->axis[i];
        c->dst += axis->extent * axis->dst;
        c->src += axis->extent * axis->src;
        if (++c->index[i] < axis->steps)
            break;
        c->dst -= axis->steps * axis->extent * axis->dst;
        c->src -= axis->steps * axis->extent * axis->src;
        c->index[i] = 0;
    }
    c->which = which_shape(b, c->index);
}

/* The first rows of a block, to be fetched: as one, where each ends where the next begins. */
static gm_ahead rows_of(const job *j, const cursor *c, int64_t most)
{
    const gm_block_shape *shape = &j->blocks.shape[c->which];
    int64_t rows = gm_least(shape->rows, most), bytes = shape->cols * j->blocks.item;
    gm_ahead ahead = {.src = c->src, .row_src = shape->row_src, .rows = rows, .bytes = bytes};

    for (int64_t r = 1; r < rows; r++)
        if (shape->row_src[r] - shape->row_src[r - 1] != bytes)
            return ahead;
    ahead.bytes *= rows;
    ahead.rows = 1;
    return ahead;
}

/* Blocks first .. last - 1. Staged, a block streams out while the next one is built. */
static void run_blocks(const job *j, int64_t first, int64_t last, char *stage)
{
    const gm_blocks *b = &j->blocks;
    int64_t step = b->options.rows_step;
    gm_flush flush = {.runs = 0};
    cursor here, next;

    seek(j, &here, first);
    for (int turn = 0; here.block < last; turn ^= 1, here = next) {
        const gm_block_shape *shape = &b->shape[here.which];
        next = here;
        advance(j, &next);
        int more = next.block < last, goes_on = more && b->walk >= 0 && next.index[b->walk] > 0;
        char *image = b->options.staged ? stage + turn * b->stage_bytes : NULL;
        char *out = image ? image + GM_STAGE_HEAD : here.dst;
        int64_t tiles = shape->strips * ((shape->cols + j->tile_cols - 1) / j->tile_cols);

        flush.step = flush.runs ? (flush.runs * flush.run_bytes / tiles + 63) & -64 : 0;
        for (int64_t s = 0; s < shape->strips; s++) {
            gm_strip strip = {
                .src = here.src,
                .out = out + shape->strip_out[s],
                .row_src = shape->row_src + s * step,
                .col_src = shape->col_src,
                .col_out = shape->col_out,
                .rows = shape->rows < step ? shape->rows : step,
                .cols = shape->cols,
                .item = b->item,
                .row_step = b->row_step,
            };
            if (s + 1 < shape->strips)
                strip.ahead = (gm_ahead){here.src, strip.row_src + step, strip.rows, shape->cols * b->item, 0, 0};
            else if (more)
                strip.ahead = rows_of(j, &next, step);
            j->strip(&strip, flush.runs ? &flush : NULL);
        }
        if (!image)
            continue;
        int continues = flush.next_stage != NULL;
        j->kernels->flush_all(&flush);
        flush = (gm_flush){
            .dst = here.dst,
            .run_dst = shape->run_dst,
            .stage = image,
            .next_stage = goes_on ? stage + (turn ^ 1) * b->stage_bytes : NULL,
            .runs = shape->runs,
            .run_bytes = shape->run_bytes,
            .pitch = b->pitch,
            .continues = continues,
        };
    }
    j->kernels->flush_all(&flush);
}

enum { ROWS_AHEAD = 2 }; /* while rows are made dense */

static int64_t dense_pitch(const gm_blocks *b)
{
    return (b->shape[0].cols * b->item + 127) / 64 * 64 | 64;
}

/* Rows of whole tiles: the last tile repeats some. */
static int64_t dense_rows(const gm_blocks *b, const gm_block_shape *shape)
{
    return shape->strips * b->options.rows_step;
}

static int64_t dense_table(const gm_blocks *b)
{
    return (dense_rows(b, &b->shape[0]) * (int64_t)sizeof(int64_t) + 63) & -64;
}

/* Copies a panel's rows to where they lie densely, behind a table of them. */
static void make_dense(const job *j, const gm_block_shape *shape, gm_panel *panel, char *room)
{
    int64_t *row_src = (int64_t *)room;
    char *dense = room + dense_table(&j->blocks);
    int64_t bytes = shape->cols * j->blocks.item, rows = dense_rows(&j->blocks, shape);
    for (int64_t r = 0; r < rows; r++) {
        const char *from = panel->src + panel->row_src[r];
        const char *ahead = panel->src + panel->row_src[r + ROWS_AHEAD < rows ? r + ROWS_AHEAD : r];
        for (int64_t k = 0; k < bytes; k += 64)
            __builtin_prefetch(ahead + k, 0, 3);
        row_src[r] = r * dense_pitch(&j->blocks);
        memcpy(dense + row_src[r], from, (size_t)bytes);
    }
    panel->src = dense;
    panel->row_src = row_src;
}

/* The most lines that share a set of a cache, of all rows' in so many columns of lines beside one another. */
static int64_t most_in_set(const gm_block_shape *shape, int64_t sets, int64_t columns)
{
    enum { SETS = 4096 };
    uint32_t here[SETS] = {0};
    int64_t most = 0;
    sets = gm_least(sets, SETS);
    for (int64_t r = 0; r < shape->rows; r++)
        here[(uint64_t)(shape->row_src[r] >> 6) % (uint64_t)sets]++;
    for (int64_t r = 0; r < shape->rows; r++) {
        uint64_t set = (uint64_t)(shape->row_src[r] >> 6) % (uint64_t)sets;
        int64_t together = 0;
        for (int64_t c = 0; c < columns; c++)
            together += here[(set + (uint64_t)c) % (uint64_t)sets];
        most = gm_most(most, together);
    }
    return most;
}

/* Columns to fetch ahead: what memory takes to answer, and so few, where the pitch is near a power of two, that the
 * rows do not evict one another from the second cache; if one column is too many, those behind it hardly matter. */
static int64_t lead_of(const job *j, const gm_cpu *cpu, const gm_block_shape *shape)
{
    enum { LEAD = 192 * 64, WAYS = 8 }; /* bytes */
    int64_t tiles = (shape->cols + j->tile_cols - 1) / j->tile_cols, width = j->tile_cols * j->blocks.item;
    int64_t bytes = dense_rows(&j->blocks, shape) * width;
    int64_t most = gm_least((LEAD + bytes - 1) / bytes, tiles), sets = cpu->l2_bytes / WAYS / 64;
    for (int64_t lead = most; sets && lead >= 1; lead--)
        if (most_in_set(shape, sets, (lead * width + 63) / 64 + 1) <= WAYS)
            return lead * j->tile_cols;
    return most * j->tile_cols;
}

static void run_panels(const job *j, int64_t first, int64_t last, char *stage)
{
    const gm_blocks *b = &j->blocks;
    gm_left left = {.turn = 0};
    cursor here, next;

    seek(j, &here, first);
    for (int continues = 0; here.block < last; here = next) {
        const gm_block_shape *shape = &b->shape[here.which];
        next = here;
        advance(j, &next);
        int more = next.block < last;
        int goes_on = more && b->walk >= 0 && next.dst == here.dst + shape->rows * b->item; /* perhaps along two axes */
        gm_panel panel = {
            .src = here.src,
            .dst = here.dst,
            .row_src = shape->row_src,
            .col_dst = shape->col_out,
            .rows = shape->rows,
            .cols = shape->cols,
            .image = stage,
            .pitch = b->pitch,
            .line_dst = shape->line_dst,
            .line_image = shape->line_image,
            .run_lines = shape->run_lines,
            .carry = stage + j->carry_at,
            .before = j->before_at ? stage + j->before_at : NULL,
            .continues = continues,
            .goes_on = goes_on,
            .left = &left,
            .lead = j->lead[here.which],
        };
        if (more) {
            const gm_block_shape *then = &b->shape[next.which];
            panel.next = (gm_rows){next.src, then->row_src, then->rows, then->cols};
        }
        if (j->dense_at)
            make_dense(j, shape, &panel, stage + j->dense_at);
        j->panel(&panel);
        continues = goes_on;
    }
}

static void run_part(void *ctx, int part)
{
    job *j = ctx;
    char *stage = j->stage ? j->stage + part * j->stage_bytes : NULL;
    for (int64_t first; (first = atomic_fetch_add(&j->next, j->chunk)) < j->blocks.count;) {
        int64_t last = first + j->chunk;
        last = last < j->blocks.count ? last : j->blocks.count;
        if (j->panel)
            run_panels(j, first, last, stage);
        else
            run_blocks(j, first, last, stage);
    }
    j->kernels->fence();
}

/* Whether so many rows of a panel fall into one set of the second cache that to fetch them ahead only evicts others. */
static int rows_collide(const gm_blocks *b, int64_t cache)
{
    enum { WAYS = 8, MANY = 64 };
    const gm_block_shape *shape = &b->shape[0];
    int64_t way = cache / WAYS, together = 0;
    for (int64_t r = 0; way && r < shape->rows; r++)
        together += (shape->row_src[r] - shape->row_src[0]) % way == 0;
    return together >= MANY;
}

/* Whether so many rows of a panel share a set of the first cache that the line between two tiles would be gone before
 * the second one wants it. Where not, it is better read twice than kept: a load of what was stored a little earlier may
 * have to wait for the streams out. */
static int rows_evict(const gm_blocks *b)
{
    enum { SETS = 64, MANY = 4 };
    const gm_block_shape *shape = &b->shape[0];
    int together[SETS] = {0}, most = 0;
    for (int64_t r = 0; r < shape->rows; r++) {
        int here = ++together[(uint64_t)(shape->row_src[r] >> 6) % SETS];
        most = here > most ? here : most;
    }
    return most > MANY;
}

/* Shorter runs, from longer rows, where the rows of longer ones collide, and theirs do not; never parts of what is one
 * run of the destination with the columns beside it. */
static gm_status spread_rows(job *j, const gm_cpu *cpu, const gm_plan *plan, gm_block_options *options)
{
    gm_blocks fewer;
    options->dst_run = 64 * GM_LINES / 2;
    options->src_run *= 2;
    gm_status status = gm_blocks_make(&fewer, plan, options);
    if (status != GM_OK)
        return status;
    int better = fewer.panels && !rows_collide(&fewer, cpu->l2_bytes);
    gm_blocks_free(better ? &j->blocks : &fewer);
    if (better)
        j->blocks = fewer;
    return GM_OK;
}

/* Lines of the destination's runs. Rows that are made dense and the next panel's have to fit the second cache together;
 * of large items, a panel has few enough rows for longer runs, and a run that is shifted to whole lines costs less the
 * longer it is. Of rows that are read by pages, 32 make a panel. */
static int64_t lines_of_run(const gm_plan *plan, int shared, int dense, int pages)
{
    if (dense)
        return GM_LINES / 2;
    if (pages)
        return 32 * plan->item / 64;
    return plan->item == 16 ? 4 * GM_LINES : plan->item == 8 || (plan->item == 4 && shared) ? 2 * GM_LINES : GM_LINES;
}

/* Panels, if the plan has them and their runs' ends are whole lines, or go on, or are few. How rows of the source lie
 * in lines hardly matters. */
static gm_status make_panels(job *j, const gm_cpu *cpu, const gm_plan *plan, int square, int shared)
{
    enum { RUN = 1 << 10, LONG_RUN = 1 << 10, PAGE = 4 << 10, MOST_ROWS = 256, LEAST_DENSE = 128 };
    int dense_too = shared && j->kernels->dense[square], pages = cpu->reads_pages && plan->item >= 4;
    int64_t lines = lines_of_run(plan, shared, dense_too, pages);
    int64_t dst_run = 64 * lines;
    int64_t rows = plan->axis[plan->dst_axis].len;
    int64_t run = rows * plan->item;
    /* Better one panel of a short axis, perhaps going on in the next one, than ragged ends halfway. */
    if (shared && run > dst_run && run <= LONG_RUN && rows <= MOST_ROWS)
        dst_run = run;
    /* Short runs that no whole panels make up: better along the source, as measured. */
    int odd = !shared && run > dst_run + dst_run / 2 && run <= LONG_RUN && run % dst_run != 0;
    gm_block_options options = {
        .staged = 1,
        .walk_dst = !odd,
        .panel = 1,
        .apart = shared,
        .src_run = pages ? gm_most(RUN, 32 * PAGE / (dst_run / plan->item)) : RUN,
        .dst_run = dst_run,
        .rows_step = j->tile_cols,
    };
    gm_status status = gm_blocks_make(&j->blocks, plan, &options);
    int dense = status == GM_OK && dense_too && j->blocks.shape[0].cols * plan->item >= LEAST_DENSE;
    if (status == GM_OK && plan->item == 16 && rows_collide(&j->blocks, cpu->l2_bytes)) {
        gm_blocks_free(&j->blocks);
        options.dst_run /= 2;
        status = gm_blocks_make(&j->blocks, plan, &options);
    }
    if (status == GM_OK && !dense && !j->blocks.fused && rows_collide(&j->blocks, cpu->l2_bytes)) {
        status = spread_rows(j, cpu, plan, &options);
        if (status != GM_OK)
            gm_blocks_free(&j->blocks);
    }
    if (status != GM_OK)
        return status;
    const gm_block_shape *shape = &j->blocks.shape[0];
    if (j->blocks.panels && (j->blocks.walk >= 0 || !shared || shape->rows * plan->item >= LONG_RUN)) {
        j->panel = dense ? j->kernels->dense[square] : j->kernels->panel[square];
        for (int which = 0; which < j->blocks.shapes; which++)
            j->lead[which] = lead_of(j, cpu, &j->blocks.shape[which]);
        j->carry_at = 2 * j->tile_cols * j->blocks.pitch;
        j->stage_bytes = j->carry_at + 64 * shape->cols;
        if (dense || rows_collide(&j->blocks, cpu->l2_bytes)) {
            j->dense_at = j->stage_bytes;
            j->stage_bytes += dense_table(&j->blocks) + dense_rows(&j->blocks, shape) * dense_pitch(&j->blocks);
        } else if (rows_evict(&j->blocks)) {
            j->before_at = j->stage_bytes;
            j->stage_bytes += 64 * dense_rows(&j->blocks, shape);
        }
    } else {
        gm_blocks_free(&j->blocks);
    }
    return GM_OK;
}

/* Any blocks. Along the destination where its lines are shared between blocks, which then hand the rest of a line on;
 * else along the source, whose runs so become longer. */
static gm_status make_blocks(job *j, const gm_plan *plan, int staged, int shared)
{
    enum { RUN = 1 << 10 };
    gm_block_options options = {
        .staged = staged,
        .walk_dst = staged && shared,
        .src_run = RUN,
        .dst_run = RUN,
        .rows_step = j->strip == j->kernels->items ? GM_ITEM_ROWS : j->tile_cols,
    };
    gm_status status = gm_blocks_make(&j->blocks, plan, &options);
    j->stage_bytes = j->blocks.options.staged ? 2 * j->blocks.stage_bytes : 0;
    return status;
}

gm_status gm_run_blocks(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how)
{
    const gm_tile_kernels *kernels = cpu->isa->tile;
    int square = how->simd && plan->src_axis >= 0 && plan->dst_axis >= 0 ? gm_tile_size(plan->item) : -1;
    job j = {
        .kernels = kernels,
        .strip = square >= 0 ? kernels->strip[square] : kernels->items,
        .tile_cols = square >= 0 ? kernels->vector / plan->item : 1,
        .dst = dst + plan->dst_start,
        .src = src + plan->src_start,
    };
    int64_t total = plan->items * plan->item;
    int shared = gm_lines_are_shared(plan, 1, j.dst);
    gm_status status = GM_OK;

    if (square >= 0 && how->staged)
        status = make_panels(&j, cpu, plan, square, shared);
    if (status == GM_OK && !j.panel)
        status = make_blocks(&j, plan, how->staged, shared);
    if (status != GM_OK)
        return status;

    int64_t parts = gm_least(total / GM_TILE_PART, how->threads);
    parts = parts < 1 ? 1 : parts > j.blocks.count ? j.blocks.count : parts;
    /* Shares small enough that a slow core does not hold the others up, large enough to keep runs whole. */
    int64_t walk = j.panel && shared && j.blocks.walk >= 0 ? j.blocks.axis[j.blocks.walk].steps : 1;
    if (j.blocks.count / walk < parts)
        walk = 1;
    j.chunk = parts == 1 ? j.blocks.count : j.blocks.count / (parts * 8) / walk * walk;
    if (j.chunk < walk)
        j.chunk = walk;
    if (j.stage_bytes) {
        j.stage = gm_alloc((size_t)(j.stage_bytes * parts));
        if (!j.stage) {
            gm_blocks_free(&j.blocks);
            return GM_NO_MEMORY;
        }
    }
    gm_parallel((int)parts, run_part, &j);
    gm_free(j.stage);
    gm_blocks_free(&j.blocks);
    return GM_OK;
}
