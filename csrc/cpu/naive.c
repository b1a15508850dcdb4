/* naive: the plain loop nest that everyone writes first, and the reference for every other stage. */
#include "cpu.h"
#include <string.h>

/* One row of the nest, item by item. The size is a constant wherever it is a common one, as it is to whoever writes
 * such a loop for a type of theirs. */
static void move_row(int64_t size, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n)
{
#define GM_ITEM(constant)                                                                                              \
    case constant:                                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                                                \
            memcpy(dst + i * dst_step, src + i * src_step, constant);                                                  \
        return
    switch (size) {
        GM_ITEM(1);
        GM_ITEM(2);
        GM_ITEM(4);
        GM_ITEM(8);
        GM_ITEM(16);
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * dst_step, src + i * src_step, (size_t)size);
    }
#undef GM_ITEM
}

gm_status gm_move_naive(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    int64_t index[GM_MAX_NDIM] = {0}, size = plan->itemsize;
    int outer = plan->naxes;
    gm_axis row = {plan->item / (size ? size : 1), size, size};
    (void)cpu;

    if (plan->family == GM_EMPTY)
        return GM_OK;
    if (row.len == 1 && outer > 0)
        row = plan->axis[--outer];
    dst += plan->dst_start;
    src += plan->src_start;
    for (;;) {
        move_row(size, dst, row.dst, src, row.src, row.len);
        int i = outer - 1;
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
