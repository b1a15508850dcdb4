#include "shuffle.h"
#include <string.h>

/* The source offset of byte `byte` of run number `run` of the box; the `inner` innermost axes make up a run. */
static int64_t source_of(int64_t item, const gm_axis *axis, int naxes, int inner, int64_t run, int64_t byte)
{
    int64_t at = byte % item, i = byte / item;
    for (int k = naxes - 1; k >= naxes - inner; k--) {
        at += i % axis[k].len * axis[k].src;
        i /= axis[k].len;
    }
    for (int k = naxes - inner - 1; k >= 0; k--) {
        at += run % axis[k].len * axis[k].src;
        run /= axis[k].len;
    }
    return at;
}

/* Covers the bytes of one vector by windows, lowest first: no later start could cover the lowest byte that is left.
 * `low` and `high` bound the box, so that no window leaves it. Returns 0 when the terms run out. */
static int add_vector(gm_shuffle *program, int window, int pair, const int64_t *from, int bytes, int64_t dst,
                      int64_t low, int64_t high)
{
    uint64_t left = bytes == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bytes) - 1;
    gm_shuffle_vector *vector = &program->vector[program->vectors++];
    int in_pair = pair; /* windows that the present term holds: full, so the first window opens a term */

    *vector = (gm_shuffle_vector){.dst = dst, .bytes = bytes, .first = program->terms};
    while (left) {
        int64_t start = INT64_MAX;
        for (int i = 0; i < bytes; i++)
            if (left >> i & 1 && from[i] < start)
                start = from[i];
        if (start > high - window)
            start = high - window > low ? high - window : low;

        if (in_pair == pair) {
            if (program->terms == GM_SHUFFLE_MAX_TERMS)
                return 0;
            gm_shuffle_term *term = &program->term[program->terms];
            *term = (gm_shuffle_term){.at = {start, start}, .picks = program->picks + 64 * program->terms};
            memset(program->picks + 64 * program->terms, 255, 64);
            program->terms++;
            vector->terms++;
            in_pair = 0;
        }
        gm_shuffle_term *term = &program->term[program->terms - 1];
        uint8_t *picks = program->picks + 64 * (program->terms - 1);
        term->at[in_pair] = start;
        for (int i = 0; i < bytes; i++)
            if (left >> i & 1 && from[i] < start + window) {
                picks[i] = (uint8_t)(from[i] - start + in_pair * window);
                term->mask |= UINT64_C(1) << i;
                left &= ~(UINT64_C(1) << i);
            }
        in_pair++;
    }
    return 1;
}

int gm_shuffle_make(gm_shuffle *program, int window, int pair, int64_t item, const gm_axis *axis, int naxes)
{
    int64_t run_bytes = item, runs = 1, low = 0, high = item;
    int inner = 0;

    while (inner < naxes && axis[naxes - 1 - inner].dst == run_bytes)
        run_bytes *= axis[naxes - 1 - inner++].len;
    for (int k = 0; k < naxes; k++) {
        int64_t reach = axis[k].src * (axis[k].len - 1);
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
        if (k < naxes - inner)
            runs *= axis[k].len;
    }
    if (run_bytes == 0 || runs * ((run_bytes + window - 1) / window) > GM_SHUFFLE_MAX_VECTORS ||
        (window < 64 && high - low < window))
        return 0;
    program->readable = high - low < 64 ? (UINT64_C(1) << (high - low)) - 1 : ~UINT64_C(0);
    program->src_bytes = high - low;
    program->runs = (int)runs;
    program->vectors = program->terms = program->dense = 0;

    for (int64_t run = 0; run < runs; run++) {
        int64_t dst = 0, rest = run;
        for (int k = naxes - inner - 1; k >= 0; k--) {
            dst += rest % axis[k].len * axis[k].dst;
            rest /= axis[k].len;
        }
        for (int64_t done = 0; done < run_bytes; done += window) {
            int bytes = (int)(run_bytes - done < window ? run_bytes - done : window);
            int64_t from[64];
            for (int i = 0; i < bytes; i++)
                from[i] = source_of(item, axis, naxes, inner, run, done + i);
            if (!add_vector(program, window, pair, from, bytes, dst + done, low, high))
                return 0;
        }
    }
    return 1;
}

/* Lists where the box's source lies, in pieces of 64 bytes. Returns their number; 0 if it is neither whole pieces nor
 * one run, whose last piece may be shorter. */
static int list_windows(int64_t *at, int64_t item, const gm_axis *axis, int naxes)
{
    int64_t run = item, rows = 1;
    uint64_t in_run = 0;
    int grown = 1, count = 0;

    while (grown) {
        grown = 0;
        for (int k = 0; k < naxes; k++)
            if (!(in_run >> k & 1) && axis[k].src == run) {
                run *= axis[k].len;
                in_run |= UINT64_C(1) << k;
                grown = 1;
            }
    }
    for (int k = 0; k < naxes; k++)
        if (!(in_run >> k & 1))
            rows *= axis[k].len;
    if ((run % 64 != 0 && rows > 1) || (run + 63) / 64 * rows > GM_SHUFFLE_MAX_DENSE)
        return 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = 0, rest = row;
        for (int k = 0; k < naxes; k++)
            if (!(in_run >> k & 1)) {
                start += rest % axis[k].len * axis[k].src;
                rest /= axis[k].len;
            }
        for (int64_t i = 0; i < run; i += 64)
            at[count++] = start + i;
    }
    return count;
}

int gm_shuffle_make_dense(gm_shuffle *program, int64_t item, const gm_axis *axis, int naxes)
{
    int64_t run_bytes = item;
    int inner = 0, dense = list_windows(program->window_at, item, axis, naxes), pairs = (dense + 1) / 2;

    while (inner < naxes && axis[naxes - 1 - inner].dst == run_bytes)
        run_bytes *= axis[naxes - 1 - inner++].len;
    if (!dense || (run_bytes % 64 != 0 && inner < naxes))
        return 0;
    program->runs = (int)((int64_t)dense * 64 / ((run_bytes + 63) / 64 * 64));
    program->dense = program->vectors = dense;
    program->terms = dense * pairs;
    program->readable = run_bytes % 64 ? (UINT64_C(1) << run_bytes % 64) - 1 : ~UINT64_C(0);

    for (int v = 0; v < dense; v++) {
        int64_t lines = (run_bytes + 63) / 64, run = v / lines, done = v % lines * 64, dst = done, rest = run;
        int bytes = (int)(run_bytes - done < 64 ? run_bytes - done : 64);
        for (int k = naxes - inner - 1; k >= 0; k--) {
            dst += rest % axis[k].len * axis[k].dst;
            rest /= axis[k].len;
        }
        program->vector[v] = (gm_shuffle_vector){.dst = dst, .bytes = bytes, .first = v * pairs, .terms = pairs};
        for (int t = 0; t < pairs; t++)
            program->term[v * pairs + t] = (gm_shuffle_term){.picks = program->picks + 64 * (v * pairs + t)};
        for (int i = 0; i < bytes; i++) {
            int64_t from = source_of(item, axis, naxes, inner, run, done + i);
            int w = 0;
            while (from < program->window_at[w] || from >= program->window_at[w] + 64)
                w++;
            program->term[v * pairs + w / 2].mask |= UINT64_C(1) << i;
            program->picks[64 * (v * pairs + w / 2) + i] = (uint8_t)(from - program->window_at[w] + w % 2 * 64);
        }
    }
    return 1;
}
