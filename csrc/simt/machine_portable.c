/* The executor for what every processor of the architecture has. */
#include "machine_isa.h"
#include "exec.inc.h"

static int runs_here(void)
{
    return 1;
}

const gm_lens_isa gm_lens_portable = {"portable", "what every processor of the architecture has", runs_here,
                                      &gm_this_machine};
