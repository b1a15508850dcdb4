/* Records to planes and back.
 * Fields of one size at equal distances, whose planes lie at equal distances too, are a plane transposed: one plan.
 * Kernels read whole vectors, beyond a row's ends too where other rows of the source lie on either side of it. Between
 * planes that are arrays of their own there may be no memory at all: there the ends go item by item.
 * Others go field by field, through chunks of records that stay in the first-level cache while every field is taken. */
#include "cpu.h"
#include "../base/integers.h"
#include "isa.h"
#include "matrices.h"
#include "pool.h"
#include "strided.h"
#include "thin_fill.h"
#include "../base/memory.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 12 << 10, SHARE = 256 << 10 }; /* bytes of records */
enum { LINE = 64, END = 4 * LINE };           /* bytes of a plane: further than any kernel reads beyond a row */

/* From one field's plane to the next one's; they need not belong to one array. */
static int64_t apart(const gm_field *a, const gm_field *b)
{
    return (int64_t)((uintptr_t)b->plane - (uintptr_t)a->plane);
}

static int is_regular(const gm_field *fields, int n)
{
    for (int i = 1; i < n; i++)
        if (fields[i].size != fields[0].size || fields[i].plane_stride != fields[0].plane_stride ||
            fields[i].offset - fields[i - 1].offset != fields[1].offset - fields[0].offset ||
            apart(&fields[i - 1], &fields[i]) != apart(&fields[0], &fields[1]))
            return 0;
    return 1;
}

typedef struct fields_job {
    const gm_field *fields;
    int nfields, gathers;
    char *records;
    int64_t n, stride, chunk, chunks, grain;
    const gm_fill *fill; /* one for every field */
    _Atomic int64_t next;
} fields_job;

static void body(void *ctx, int part)
{
    fields_job *job = ctx;
    (void)part;
    for (int64_t begin; (begin = atomic_fetch_add(&job->next, job->grain)) < job->chunks;) {
        int64_t end = begin + job->grain < job->chunks ? begin + job->grain : job->chunks;
        for (int64_t chunk = begin; chunk < end; chunk++) {
            int64_t first = chunk * job->chunk;
            int64_t n = chunk == job->chunks - 1 ? job->n - first : job->chunk; /* the last takes what is left */
            for (int i = 0; i < job->nfields; i++) {
                const gm_field *field = &job->fields[i];
                char *record = job->records + first * job->stride + field->offset;
                char *plane = field->plane + first * field->plane_stride;
                gm_fill_run(&job->fill[i], job->gathers ? plane : record, job->gathers ? record : plane, n);
            }
        }
    }
}

/* The first field that has this one's size and plane stride: one program moves them all. */
static int first_like(const gm_field *fields, int n)
{
    int i = 0;
    while (fields[i].size != fields[n].size || fields[i].plane_stride != fields[n].plane_stride)
        i++;
    return i;
}

/* shape: records and fields; steps: from record to record, and from field to field. */
static gm_status move_regular(const gm_cpu *cpu, char *dst, const char *src, int64_t item, const int64_t shape[2],
                              const int64_t dst_step[2], const int64_t src_step[2], int gathers)
{
    /* So many records that what lies between the ends begins as far from a line as the whole does. */
    int64_t end = LINE * gm_pieces(END / LINE, gm_most(llabs(src_step[0]), 1));
    int64_t middle[] = {shape[0] - 2 * end, shape[1]};
    gm_plan plan;

    gm_plan_make(&plan, item, 2, shape, src_step, dst_step);
    int apart = !gathers && shape[1] > 1 && llabs(src_step[1]) != shape[0] * llabs(src_step[0]);
    if (!apart || gm_small_suits(&plan))
        return gm_move_tuned(cpu, &plan, dst, src);
    if (middle[0] <= 0) {
        gm_axis all[] = {{shape[0], src_step[0], dst_step[0]}, {shape[1], src_step[1], dst_step[1]}};
        gm_copy_box(dst, src, item, all, 2);
        return GM_OK;
    }
    for (int last = 0; last < 2; last++) {
        int64_t from = last ? shape[0] - end : 0;
        gm_axis ends[] = {{end, src_step[0], dst_step[0]}, {shape[1], src_step[1], dst_step[1]}};
        gm_copy_box(dst + from * dst_step[0], src + from * src_step[0], item, ends, 2);
    }
    gm_plan_make(&plan, item, 2, middle, src_step, dst_step);
    return gm_move_tuned(cpu, &plan, dst + end * dst_step[0], src + end * src_step[0]);
}

static gm_status move_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, char *records, int64_t n,
                             int64_t stride, int gathers)
{
    if (n <= 0 || nfields == 0)
        return GM_OK;
    int64_t next_field = nfields > 1 ? fields[1].offset - fields[0].offset : 0;
    int64_t next_plane = nfields > 1 ? apart(&fields[0], &fields[1]) : 0;
    if (is_regular(fields, nfields)) {
        int64_t shape[] = {n, nfields}, record[] = {stride, next_field}, plane[] = {fields[0].plane_stride, next_plane};
        char *at = records + fields[0].offset;
        return gathers ? move_regular(cpu, fields[0].plane, at, fields[0].size, shape, plane, record, 1)
                       : move_regular(cpu, at, fields[0].plane, fields[0].size, shape, record, plane, 0);
    }

    fields_job job = {fields, nfields, gathers, records, n, stride, 1, 1, 1, NULL, 0};
    int64_t record_bytes = llabs(stride) > 0 ? llabs(stride) : 1;
    job.chunk = CHUNK / record_bytes / 64 * 64;
    if (job.chunk < 64)
        job.chunk = 64;
    if (job.chunk > n)
        job.chunk = n;
    job.chunks = n / job.chunk;

    int programs = 0;
    for (int i = 0; i < nfields; i++)
        programs += first_like(fields, i) == i;
    gm_fill *fill = gm_alloc((size_t)nfields * sizeof *fill);
    gm_shuffle *program = gm_alloc((size_t)programs * sizeof *program);
    if (!fill || !program) {
        gm_free(fill);
        gm_free(program);
        return GM_NO_MEMORY;
    }
    for (int i = 0, used = 0; i < nfields; i++) {
        int like = first_like(fields, i);
        if (like < i) {
            fill[i] = fill[like];
            continue;
        }
        gm_axis axis = {job.chunk, gathers ? stride : fields[i].plane_stride,
                        gathers ? fields[i].plane_stride : stride};
        fill[i] = (gm_fill){.item = fields[i].size, .naxes = 1, .split_at = 0, .axis = {axis}};
        gm_fill_choose(&fill[i], cpu->isa->thin, &program[used++]);
    }
    job.fill = fill;
    int64_t total = n * record_bytes;
    int parts = atomic_load(&cpu->threads);
    if (parts > total / (128 << 10) + 1)
        parts = (int)(total / (128 << 10) + 1);
    job.grain = 1 + SHARE / (job.chunk * record_bytes);
    if (job.grain > (job.chunks + parts - 1) / parts)
        job.grain = (job.chunks + parts - 1) / parts;
    gm_parallel(parts, body, &job);
    gm_free(fill);
    gm_free(program);
    return GM_OK;
}

gm_status gm_cpu_gather_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, const char *records, int64_t n,
                               int64_t stride)
{
    return move_fields(cpu, fields, nfields, (char *)(uintptr_t)records, n, stride, 1);
}

gm_status gm_cpu_scatter_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, char *records, int64_t n,
                                int64_t stride)
{
    return move_fields(cpu, fields, nfields, records, n, stride, 0);
}
