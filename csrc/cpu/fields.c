/* Records to planes and back: one field after another. */
#include "cpu.h"
#include <string.h>

gm_status gm_cpu_gather_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, const char *records, int64_t n,
                               int64_t stride)
{
    (void)cpu;
    for (const gm_field *f = fields; f < fields + nfields; f++)
        for (int64_t i = 0; i < n; i++)
            memcpy(f->plane + i * f->plane_stride, records + i * stride + f->offset, (size_t)f->size);
    return GM_OK;
}

gm_status gm_cpu_scatter_fields(const gm_cpu *cpu, const gm_field *fields, int nfields, char *records, int64_t n,
                                int64_t stride)
{
    (void)cpu;
    for (const gm_field *f = fields; f < fields + nfields; f++)
        for (int64_t i = 0; i < n; i++)
            memcpy(records + i * stride + f->offset, f->plane + i * f->plane_stride, (size_t)f->size);
    return GM_OK;
}
