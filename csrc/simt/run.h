/* The parts of a run: lens.c sets it up, launch.c checks it and gives addresses, crew.c has the host threads, and
 * blocks.c carries it out. */
#pragma once
#include "machine.h"
#include "ptx.h"

typedef struct gm_run_memory {
    gm_segment *segments;
    uint8_t *variables, *parameters;
    size_t variable_bytes;
} gm_run_memory;

/* launch.c */
gm_status gm_fail(gm_failure *failure, gm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
gm_status gm_check_launch(gm_run *run, gm_failure *failure);
gm_status gm_place_module(gm_run *run, const gm_ptx *module, gm_run_memory *m, gm_failure *failure);
gm_status gm_place_buffers(gm_run *run, gm_lens_launch *launch, gm_run_memory *m, gm_failure *failure);

/* crew.c: `count` workers, each on a thread of its own, until all have ended. */
gm_status gm_execute(gm_run *run, gm_worker *workers, int count, gm_failure *failure);
double gm_now(void); /* seconds, of the monotonic clock */

/* blocks.c: takes units of the run until there are none, or the run is stopped. */
void gm_worker_run(gm_worker *worker);
