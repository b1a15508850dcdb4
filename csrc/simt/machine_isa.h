/* What the executor's bodies use; included before an ISA variant changes the target. */
#pragma once
#include "machine.h"
#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
