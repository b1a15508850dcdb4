#include "isa.h"
#include <stddef.h>

const gm_isa *const gm_isas[] = {
#if defined(__x86_64__)
    &gm_isa_avx512,
    &gm_isa_avx2,
#elif defined(__aarch64__)
    &gm_isa_neon,
#endif
    &gm_isa_portable,
    NULL,
};
