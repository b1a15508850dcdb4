/* Finds records and planes in a plan, and how a block shares them out. */
#include "planes.h"
#include "../base/integers.h"
#include "walk.h"
#include <string.h>

enum { VECTOR = 16, WARP = 32, MOST_FIELDS = 40 };

/* Records on one side are planes on the other: the long axis, whose items are neighbours in a plane, and the axes of
 * the fields, which together make the step from one record to the next. */
static int find(gm_planes *planes, const gm_plan *plan, int unit, int to_planes)
{
    unsigned char taken[GM_MAX_NDIM] = {0};
    int64_t fields = 1;
    int records = -1, more = 1;

    memset(planes, 0, sizeof *planes);
    for (int i = 0; i < plan->naxes; i++)
        if ((to_planes ? plan->axis[i].dst : plan->axis[i].src) == unit)
            records = i;
    if (records < 0)
        return 0;
    int64_t record = to_planes ? plan->axis[records].src : plan->axis[records].dst;
    taken[records] = 1;
    while (more && fields * unit < record) {
        more = 0;
        for (int i = plan->naxes - 1; i >= 0 && !more; i--)
            if (!taken[i] && planes->nfield < GM_PLANES_FIELDS &&
                (to_planes ? plan->axis[i].src : plan->axis[i].dst) == fields * unit) {
                planes->field[planes->nfield++] = gm_walk_axis_of(plan->axis[i]);
                fields *= plan->axis[i].len;
                taken[i] = 1;
                more = 1;
            }
    }
    if (fields * unit != record || fields == 1 || fields > MOST_FIELDS || plan->axis[records].len > INT32_MAX / 2 ||
        plan->axis[records].len * unit < WARP * VECTOR)
        return 0;
    planes->records = (unsigned)plan->axis[records].len;
    planes->fields = (unsigned)fields;
    for (int i = plan->naxes - 1; i >= 0; i--)
        if (!taken[i]) {
            if (planes->nbatch == GM_PLANES_BATCH)
                return 0;
            planes->batch[planes->nbatch++] = gm_walk_axis_of(plan->axis[i]);
        }
    return 1;
}

/* Whether every plane starts on a line of the destination. */
static int starts_on_lines(const gm_planes *planes, const char *dst)
{
    uint64_t bits = (uintptr_t)dst;

    for (int i = 0; i < planes->nfield; i++)
        bits |= (uint64_t)planes->field[i].dst;
    for (int i = 0; i < planes->nbatch; i++)
        bits |= (uint64_t)planes->batch[i].dst;
    return bits % GM_PLANES_LINE == 0;
}

int gm_planes_make(gm_planes_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    enum { SIX = 31 << 10, FIVE = 38 << 10 };
    static const int enough[2] = {14 << 10, 12800}; /* bytes of records for a block: to records, to planes */
    gm_planes *planes = &launch->planes;
    int64_t batches = 1, vectors = WARP, items = VECTOR / unit;

    if (plan->item != unit || unit > 8)
        return 0;
    launch->to_planes = find(planes, plan, unit, 1);
    if (!launch->to_planes && !find(planes, plan, unit, 0))
        return 0;
    planes->src_end = (uintptr_t)src + (uint64_t)gm_reach_of(plan).high;
    int64_t fewest = launch->to_planes ? WARP : GM_PLANES_STEPS * WARP;
    while ((vectors < fewest || vectors * VECTOR * planes->fields < enough[launch->to_planes]) &&
           2 * vectors * items <= planes->records)
        vectors *= 2;
    planes->steps = (int)gm_least(vectors / WARP, GM_PLANES_STEPS);
    while (WARP * planes->steps << planes->parts_shift < vectors)
        planes->parts_shift++;
    /* What precedes a plane's first whole vector is a vector too, of which a block has one less; and blocks begin with
     * whole sectors of 32 bytes. */
    planes->tile = (unsigned)((launch->to_planes ? vectors : vectors - 2) * items);
    int64_t extra = launch->to_planes && !starts_on_lines(planes, dst) ? GM_PLANES_LINE / unit - 1 : 0;
    int64_t tiles = gm_pieces(planes->records + extra, planes->tile);
    GM_DIVIDE_BY(&planes->tiles, tiles);
    /* The more powers of two the number of fields has, the fewer lanes can begin with one item without a conflict. */
    int power = 0;
    while (power < 2 && unit << power < 4 && !(planes->fields >> power & 1))
        power++;
    planes->lanes_shift = 3 - power;
    planes->begin_shift = unit == 8 ? 3 : 2 - power;
    for (int i = 0; i < planes->nbatch; i++)
        batches *= planes->batch[i].len;
    if (batches > INT32_MAX / tiles)
        return 0;
    int64_t tasks = (int64_t)planes->fields << planes->parts_shift;
    launch->blocks = (unsigned)(batches * tiles);
    launch->threads = (unsigned)(WARP * gm_pieces(tasks, gm_pieces(tasks, GM_PLANES_WARPS)));
    if (launch->to_planes && unit <= 2 && tasks > GM_PLANES_WARPS)
        launch->threads = WARP * GM_PLANES_WARPS; /* for the loads; some of them find less to gather */
    launch->shared = (unsigned)GM_PLANES_SHARED((int)planes->fields, (int)vectors);
    /* Six blocks on a multiprocessor would leave its first-level cache no room for the lines that two warps share. */
    if (!launch->to_planes && launch->shared > SIX && launch->shared < FIVE)
        launch->shared = FIVE;
    return 1;
}

int gm_planes_suits(const gm_planes_launch *launch, int unit)
{
    enum { PLANE = 4096 };
    static const unsigned fewest[2] = {2048, 400}; /* blocks: to records, to planes */
    static const double full = 0.75;
    const gm_planes *planes = &launch->planes;

    return launch->blocks >= fewest[launch->to_planes] && (int64_t)planes->records * unit >= PLANE &&
           planes->fields % 16 && planes->records >= full * ((double)planes->tiles.n * planes->tile);
}
