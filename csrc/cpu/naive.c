/* naive: the plain loop nest that everyone writes first, and the reference for every other stage. */
#include "cpu.h"
#include <string.h>

gm_status gm_move_naive(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    int64_t index[GM_MAX_NDIM] = {0};
    (void)cpu;

    if (plan->family == GM_EMPTY)
        return GM_OK;
    dst += plan->dst_start;
    src += plan->src_start;
    for (;;) {
        memcpy(dst, src, (size_t)plan->item);
        int i = plan->naxes - 1;
        for (; i >= 0; i--) {
            const gm_axis *axis = &plan->axis[i];
            dst += axis->dst;
            src += axis->src;
            if (++index[i] < axis->len)
                break;
            dst -= axis->dst * axis->len;
            src -= axis->src * axis->len;
            index[i] = 0;
        }
        if (i < 0)
            return GM_OK;
    }
}

gm_status gm_move_tuned(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    return gm_move_naive(cpu, plan, dst, src);
}
