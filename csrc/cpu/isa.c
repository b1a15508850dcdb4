#include "isa.h"
#include <stddef.h>

static int always(void)
{
    return 1;
}

static const gm_isa portable = {"portable", "what every processor of the architecture has", always, NULL, NULL, NULL};

const gm_isa *const gm_isas[] = {&portable, NULL};
