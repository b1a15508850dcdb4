/* simd and tuned: */
#include "sum.h"

gm_status gm_sum_simd(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from)
{
    return gm_sum_unrolled(cpu, plan, dst, to, src, from);
}

gm_status gm_sum_tuned(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from)
{
    return gm_sum_unrolled(cpu, plan, dst, to, src, from);
}
