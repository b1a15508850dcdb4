/* The handlers of one ISA variant, from the rows of handlers.def. Every instruction begins alike: the lanes that take
 * part are those of the split that runs, less those that its guard keeps out; with all 32 the result goes straight to
 * its slot, else it is blended into it. Slots of one size never overlap in part, so loops over lanes need no copies. */

#if defined(__clang__)
#    pragma STDC FP_CONTRACT OFF
#    pragma clang diagnostic ignored "-Wpass-failed" /* some operations have no vector form: no harm */
#    define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < GM_LANES; i++)
#else
#    define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < GM_LANES; i++)
#endif

typedef uint8_t u8;
typedef int8_t s8;
/* Slots are read as integers and floats alike. */
typedef uint16_t __attribute__((may_alias)) u16;
typedef uint32_t __attribute__((may_alias)) u32;
typedef uint64_t __attribute__((may_alias)) u64;
typedef int16_t __attribute__((may_alias)) s16;
typedef int32_t __attribute__((may_alias)) s32;
typedef int64_t __attribute__((may_alias)) s64;
typedef float __attribute__((may_alias)) f32;
typedef double __attribute__((may_alias)) f64;

#define SLOT(T, at) ((T *)(void *)__builtin_assume_aligned(regs + (at), 64))
#define WORD(at)    (*(u32 *)(void *)(regs + (at)))
#define TAKE_PART   const u32 lanes = w->active & (WORD(in->guard) ^ in->invert)
#define HANDLER(name)                                                                                                  \
    static const gm_insn *gm_do_##name(const gm_insn *in, gm_warp *w __attribute__((unused)),                          \
                                       uint8_t *regs __attribute__((unused)))

/* Handlers whose work another file does, where any lane takes part. */
#define HANDED_ON(name, work)                                                                                          \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        return lanes ? work : in + 1;                                                                                  \
    }

#include "exec_lane.inc.h"

/* r where lanes says, d elsewhere. gcc 12 joins some operations with the blend to instructions that it then does not
 * know (masked 16-bit minimum of two operands in memory): MADE keeps them apart. */
#define MADE(r)        __asm__("" : : "r"(r) : "memory")
#define BLEND(T, d, r) EACH_LANE(d)[i] = lanes >> i & 1 ? (T)(r)[i] : (d)[i]

/* A result a lane, straight to its slot or blended into it; `given` names the operands of lane i. */
#define EACH_RESULT(R, given, value)                                                                                   \
    R *d = SLOT(R, in->d);                                                                                             \
    if (__builtin_expect(lanes == GM_FULL, 1)) {                                                                       \
        EACH_LANE                                                                                                      \
        {                                                                                                              \
            given;                                                                                                     \
            d[i] = (R)(value);                                                                                         \
        }                                                                                                              \
    } else {                                                                                                           \
        R r[GM_LANES] __attribute__((aligned(64)));                                                                    \
        EACH_LANE                                                                                                      \
        {                                                                                                              \
            given;                                                                                                     \
            r[i] = (R)(value);                                                                                         \
        }                                                                                                              \
        MADE(r);                                                                                                       \
        BLEND(R, d, r);                                                                                                \
    }                                                                                                                  \
    return in + 1
#define GM_UNARY(name, R, A, value)                                                                                    \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const A *pa = SLOT(A, in->a);                                                                                  \
        EACH_RESULT(R, const A a = pa[i], value);                                                                      \
    }
#define GM_BINARY(name, R, A, B, value)                                                                                \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const A *pa = SLOT(A, in->a);                                                                                  \
        const B *pb = SLOT(B, in->b);                                                                                  \
        EACH_RESULT(R, const A a = pa[i]; const B b = pb[i], value);                                                   \
    }
#define GM_TERNARY(name, R, A, B, C, value)                                                                            \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const A *pa = SLOT(A, in->a);                                                                                  \
        const B *pb = SLOT(B, in->b);                                                                                  \
        const C *pc = SLOT(C, in->c);                                                                                  \
        EACH_RESULT(R, const A a = pa[i]; const B b = pb[i]; const C c = pc[i], value);                                \
    }
#define GM_SELECT(name, T)                                                                                             \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        T *d = SLOT(T, in->d);                                                                                         \
        const T *a = SLOT(T, in->a), *b = SLOT(T, in->b);                                                              \
        const u32 which = WORD(in->c) ^ (u32)in->imm;                                                                  \
        T r[GM_LANES] __attribute__((aligned(64)));                                                                    \
        EACH_LANE r[i] = which >> i & 1 ? a[i] : b[i];                                                                 \
        if (__builtin_expect(lanes == GM_FULL, 1))                                                                     \
            memcpy(d, r, sizeof r);                                                                                    \
        else                                                                                                           \
            BLEND(T, d, r);                                                                                            \
        return in + 1;                                                                                                 \
    }
#define GM_COMPARE(name, T, truth)                                                                                     \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const T *pa = SLOT(T, in->a), *pb = SLOT(T, in->b);                                                            \
        u32 r = 0;                                                                                                     \
        EACH_LANE                                                                                                      \
        {                                                                                                              \
            const T a = pa[i], b __attribute__((unused)) = pb[i];                                                      \
            r |= (truth) ? bit_of[i] : 0;                                                                              \
        }                                                                                                              \
        WORD(in->d) = (WORD(in->d) & ~lanes) | (r & lanes);                                                            \
        return in + 1;                                                                                                 \
    }
#define GM_COMPARE_FLUSHED(name, T, truth)                                                                             \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const T *pa = SLOT(T, in->a), *pb = SLOT(T, in->b);                                                            \
        u32 r = 0;                                                                                                     \
        EACH_LANE                                                                                                      \
        {                                                                                                              \
            const T a = flush(pa[i]), b = flush(pb[i]);                                                                \
            r |= (truth) ? bit_of[i] : 0;                                                                              \
        }                                                                                                              \
        WORD(in->d) = (WORD(in->d) & ~lanes) | (r & lanes);                                                            \
        return in + 1;                                                                                                 \
    }
#define GM_COMPARE_HALF(name, widen, truth)                                                                            \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const u16 *pa = SLOT(u16, in->a), *pb = SLOT(u16, in->b);                                                      \
        f32 x[GM_LANES], y[GM_LANES];                                                                                  \
        u32 r = 0;                                                                                                     \
        EACH_LANE x[i] = widen(pa[i]);                                                                                 \
        EACH_LANE y[i] = widen(pb[i]);                                                                                 \
        MADE(x);                                                                                                       \
        MADE(y);                                                                                                       \
        EACH_LANE                                                                                                      \
        {                                                                                                              \
            const f32 a = x[i], b = y[i];                                                                              \
            r |= (truth) ? bit_of[i] : 0;                                                                              \
        }                                                                                                              \
        WORD(in->d) = (WORD(in->d) & ~lanes) | (r & lanes);                                                            \
        return in + 1;                                                                                                 \
    }
#define GM_WORD(name, value)                                                                                           \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        const u32 a = WORD(in->a), b __attribute__((unused)) = WORD(in->b), c __attribute__((unused)) = WORD(in->c);   \
        WORD(in->d) = (WORD(in->d) & ~lanes) | ((value)&lanes);                                                        \
        return in + 1;                                                                                                 \
    }
#define GM_HAND(name, ...)

static const u32 bit_of[GM_LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

#define GM_HANDLER(name, form, ...) GM_##form(name, __VA_ARGS__)
#include "handlers.def"
#undef GM_HANDLER

#include "exec_integer.inc.h"
#include "exec_float.inc.h"
#include "exec_flow.inc.h"
#include "exec_memory.inc.h"
#include "exec_warp.inc.h"
#include "exec_matrix.inc.h"

static gm_handler *const gm_handlers[GM_DO_COUNT] = {
#define GM_HANDLER(name, ...) gm_do_##name,
#include "handlers.def"
#undef GM_HANDLER
};
static const gm_machine gm_this_machine = {gm_handlers};
