/* Between lens.c, which sets a run up, and blocks.c, which carries it out. */
#pragma once
#include "machine.h"

/* Takes units of the run until there are none, or the run is stopped. */
void gm_worker_run(gm_worker *worker);
