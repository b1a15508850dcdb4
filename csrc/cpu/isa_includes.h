/* What the kernel bodies use; included before an ISA variant changes the target. */
#pragma once
#include "isa.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif
