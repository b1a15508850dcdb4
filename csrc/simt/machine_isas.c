#include "lens.h"

extern const gm_lens_isa gm_lens_portable, gm_lens_avx2, gm_lens_avx512;

const gm_lens_isa *const gm_lens_isas[] = {
#if defined(__x86_64__)
    &gm_lens_avx512,
    &gm_lens_avx2,
#endif
    &gm_lens_portable,
    NULL,
};
