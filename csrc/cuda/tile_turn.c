/* Which units of their vectors a warp's lanes take first, so that they are on different banks of shared memory.
 *
 * All lanes take a unit of their vector at the same time. Where the vectors begin a multiple of some words apart, they
 * are on few banks; if neighbouring lanes begin with other units, their places differ by those units' distance too. The
 * few ways that the kernels know are tried on the first warp's vectors. */
#include "tile.h"
#include "tile_box.h"

enum { WARP = 32, BANKS = 32, WORD = 4 };

/* Where unit `n` of a run lies in the image. */
static int unit_place(const gm_tile *tile, int n)
{
    int periods = n / (int)tile->period.n, rest = n % (int)tile->period.n, place = 0;

    if (!tile->chain)
        return n * tile->along_image + (tile->skew_shift < 31 ? n >> tile->skew_shift << 4 : 0);
    for (int k = 0; k < tile->chain; k++) {
        int len = (int)tile->period_axis[k].len, index = rest % len;
        place += index * tile->period_axis[k].image + (k == 0 ? index >> tile->skew_shift << 4 : 0);
        rest /= len;
    }
    return periods * tile->along_image + place;
}

static int run_place(const gm_tile *tile, int run)
{
    int place = 0;

    for (int k = 0; k < tile->nruns_axes; k++) {
        int len = (int)tile->runs[k].len;
        place += (k + 1 < tile->nruns_axes ? run % len : run) * tile->runs[k].image;
        run /= len;
    }
    return place;
}

/* Passes that the banks need for one access of the lanes. */
static int passes(const int *place)
{
    int count[BANKS] = {0}, words[BANKS][WARP], most = 0;

    for (int i = 0; i < WARP; i++) {
        int word = place[i] / WORD, bank = word % BANKS, k = 0;
        while (k < count[bank] && words[bank][k] != word)
            k++;
        if (k < count[bank])
            continue;
        words[bank][count[bank]++] = word;
        most = count[bank] > most ? count[bank] : most;
    }
    return most;
}

void gm_lanes_turn(int (*place)[GM_VECTOR], int vector, int *shift, int *step)
{
    static const unsigned char ways[][2] = {{5, 0}, {3, 1}, {3, 2}, {3, 4}, {2, 1}, {2, 2}, {2, 4},
                                            {1, 1}, {1, 2}, {0, 1}, {0, 2}, {0, 3}, {0, 5}, {0, 7}};
    enum { WAYS = sizeof ways / sizeof *ways, SAMPLES = 4, PASSES = 32 };
    int best = 0, least = 0, none = 0;

    for (int way = 0; way < WAYS && (way == 0 || least > SAMPLES); way++) {
        int sum = 0;
        for (int k = 0; k < vector && (way == 0 || sum < least); k += (vector + SAMPLES - 1) / SAMPLES) {
            int taken[WARP];
            for (int i = 0; i < WARP; i++)
                taken[i] = place[i][(k + (i >> ways[way][0]) * ways[way][1]) % vector];
            sum += passes(taken);
        }
        if (way == 0 || sum < least) {
            least = sum;
            best = way;
            none = way == 0 ? sum : none;
        }
    }
    /* A turn costs some thirty instructions: up to so many passes for 512 bytes it is faster without. */
    if (none * vector <= PASSES * SAMPLES || 4 * least > 3 * none)
        best = 0;
    *shift = ways[best][0];
    *step = ways[best][1];
}

void gm_tile_turn(gm_tile *tile, int unit)
{
    int vector = GM_VECTOR / unit, lanes = 1 << tile->lanes_shift, place[WARP][GM_VECTOR];

    tile->turn_shift = 5;
    tile->turn_step = 0;
    if (vector == 1)
        return;
    for (int i = 0; i < WARP; i++) {
        int rest = i >> tile->lanes_shift, team = rest / (int)tile->vector_threads.n,
            first = rest % (int)tile->vector_threads.n;
        for (int k = 0; k < vector; k++)
            place[i][k] = (1 << 20) + run_place(tile, team * lanes + i % lanes) + unit_place(tile, first * vector + k);
    }
    gm_lanes_turn(place, vector, &tile->turn_shift, &tile->turn_step);
}
