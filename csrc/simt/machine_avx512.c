/* The executor for AVX-512: a 32-lane register is two vectors, and a comparison gives its 16 bits at once. */
#include "machine_isa.h"
#include "../base/isa_runs.h"

#if defined(__x86_64__)
#    define GM_TARGET "avx2,bmi,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl"
#    define GM_TUNE   "prefer-vector-width=512,tune=icelake-server"
#    include "../base/isa_begin.h"
#    include "exec.inc.h"
#    include "../base/isa_end.h"

const gm_lens_isa gm_lens_avx512 = {"avx512", "AVX-512 F, BW, DQ and VL: 64-byte vectors, masks", gm_runs_avx512,
                                    &gm_this_machine};
#endif
