/* avx2: 32-byte vectors. */
#include "isa_includes.h"
#include "../base/isa_runs.h"

#if defined(__x86_64__)
#    define GM_TARGET "avx2,bmi,bmi2,fma,f16c"
#    define GM_VECTOR 32
#    define GM_AVX2   1
#    define GM_AVX512 0
#    include "../base/isa_begin.h"
#    include "isa_kernels.inc.h"
#    include "../base/isa_end.h"

const gm_isa gm_isa_avx2 = {"avx2", "AVX2, BMI, BMI2, FMA and F16C: 32-byte vectors", gm_runs_avx2, GM_ISA_FAMILIES};
#endif
