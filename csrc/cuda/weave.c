/* Finds bytes of a few planes that become records, or the other way round, in whole vectors. */
#include "weave.h"
#include "../base/integers.h"
#include "walk.h"
#include <string.h>

/* The axis of these steps, in bytes, on the side of the records and, but for 0, on that of the planes; -1 without one.
 */
static int find(const gm_plan *plan, int weaves, int64_t of_records, int64_t of_planes)
{
    for (int i = 0; i < plan->naxes; i++) {
        const gm_axis *axis = &plan->axis[i];
        if ((weaves ? axis->dst : axis->src) == of_records &&
            (!of_planes || (weaves ? axis->src : axis->dst) == of_planes))
            return i;
    }
    return -1;
}

int gm_weave_make(gm_weave_launch *launch, const gm_plan *plan, const char *dst, const char *src)
{
    enum { UNIT = GM_WEAVE_UNIT };
    gm_weave *weave = &launch->weave;
    int fields = -1, records = -1;
    uint64_t bits = (uintptr_t)dst | (uintptr_t)src;
    int64_t units = 1;

    if (plan->item != 1 || plan->naxes < 2 || plan->naxes > GM_WEAVE_AXES)
        return 0;
    memset(weave, 0, sizeof *weave);
    for (int weaves = 1; weaves >= 0 && records < 0; weaves--) {
        launch->weaves = weaves;
        fields = find(plan, weaves, 1, 0);
        if (fields >= 0 && plan->axis[fields].len <= GM_WEAVE_MOST)
            records = find(plan, weaves, plan->axis[fields].len, 1);
    }
    if (records < 0 || plan->axis[records].len % UNIT)
        return 0;
    launch->fields = (int)plan->axis[fields].len;
    weave->plane = launch->weaves ? plan->axis[fields].src : plan->axis[fields].dst;
    bits |= (uint64_t)weave->plane;
    for (int k = plan->naxes; k >= 0; k--) { /* the records first, then what is next on the destination's side */
        int i = k == plan->naxes ? records : k;
        if (k == records || k == fields)
            continue;
        int64_t each = i == records ? UNIT : 1, len = plan->axis[i].len / each;
        if (len > INT32_MAX / units)
            return 0;
        units *= len;
        gm_axis axis = {len, plan->axis[i].src * each, plan->axis[i].dst * each};
        weave->axis[weave->naxes] = gm_walk_axis_of(axis);
        bits |= (uint64_t)axis.src | (uint64_t)axis.dst;
        weave->naxes += len > 1;
    }
    if (bits % UNIT)
        return 0;
    weave->units = (unsigned)units;
    launch->threads = 32 * GM_WEAVE_WARPS;
    launch->blocks = (unsigned)gm_pieces(units, (int64_t)launch->threads);
    launch->shared = (unsigned)(GM_WEAVE_WARPS * GM_WEAVE_STAGED(launch->fields) * 16);
    return 1;
}
