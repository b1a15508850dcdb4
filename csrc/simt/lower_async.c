/* Bulk copies, their barriers in shared memory, and matrix products, as handlers. */
#include "lower_operand.h"

/* --- barriers -------------------------------------------------------------------------------------------------- */

static const struct {
    uint16_t op;
    uint8_t what, gives, parity_bytes; /* gives: operand 0 is a destination */
} barriers[] = {
    {GM_OP_MBARRIER_INIT, GM_MBARRIER_INIT, 0, 4},
    {GM_OP_MBARRIER_INVAL, GM_MBARRIER_INVAL, 0, 4},
    {GM_OP_MBARRIER_EXPECT_TX, GM_MBARRIER_EXPECT, 0, 4},
    {GM_OP_MBARRIER_COMPLETE_TX, GM_MBARRIER_COMPLETE, 0, 4},
    {GM_OP_MBARRIER_ARRIVE, GM_MBARRIER_ARRIVE, 1, 4},
    {GM_OP_MBARRIER_ARRIVE_EXPECT_TX, GM_MBARRIER_ARRIVE_EXPECT, 1, 4},
    {GM_OP_MBARRIER_ARRIVE_DROP, GM_MBARRIER_DROP, 1, 4},
    {GM_OP_MBARRIER_TEST_WAIT, GM_MBARRIER_TEST, 1, 8},
    {GM_OP_MBARRIER_TRY_WAIT, GM_MBARRIER_TRY, 1, 8},
    {GM_OP_CP_ASYNC_MBARRIER_ARRIVE, GM_MBARRIER_ARRIVE, 0, 4},
};

static int barrier(gm_lower *l)
{
    const gm_ptx_inst *inst = l->inst;
    for (uint32_t k = 0; k < sizeof barriers / sizeof *barriers; k++) {
        if (barriers[k].op != inst->op)
            continue;
        int waits = barriers[k].parity_bytes == 8, parity = inst->mod[GM_FIELD_PARITY] != 0;
        uint32_t at = barriers[k].gives, bytes = waits && !parity ? 8 : 4;
        const gm_ptx_operand *d = operand(l, 0), *b = operand(l, at + 1);
        uint32_t address = gm_lower_address(l, operand(l, at), (gm_space)inst->space);
        uint32_t value = b->kind == GM_OPERAND_NONE ? GM_NOWHERE : gm_lower_source(l, b, bytes);
        if (inst->op == GM_OP_CP_ASYNC_MBARRIER_ARRIVE && !inst->mod[GM_FIELD_NOINC])
            return 1; /* one more is expected, and comes at once */
        gm_insn *in = gm_lower_emit(l, GM_DO_mbarrier);
        in->a = address, in->b = value, in->e = bytes, in->k = barriers[k].what, in->f = (uint32_t)parity;
        in->n = (uint8_t)(inst->space == GM_SPACE_GENERIC ? GM_SPACE_GENERIC : GM_SPACE_SHARED);
        in->d = GM_NOWHERE;
        if (barriers[k].gives && d->kind == GM_OPERAND_REG)
            in->d = gm_lower_destination(l, d, waits ? 1 : 8);
        else if (waits)
            in->d = gm_lower_temp(l, 1);
        return 1;
    }
    if (inst->op == GM_OP_MBARRIER_PENDING_COUNT) {
        uint32_t value = gm_lower_source(l, operand(l, 1), 8);
        gm_insn *in = gm_lower_emit(l, GM_DO_mbarrier);
        in->b = value, in->e = 8, in->k = GM_MBARRIER_PENDING, in->d = gm_lower_destination(l, operand(l, 0), 4);
        return 1;
    }
    return 0;
}

/* --- copies ---------------------------------------------------------------------------------------------------- */

static gm_space plain_space(uint8_t space)
{
    return space == GM_SPACE_GLOBAL ? GM_SPACE_GLOBAL : GM_SPACE_SHARED;
}

static void copy(gm_lower *l, int reduces)
{
    const gm_ptx_inst *inst = l->inst;
    gm_space to = plain_space(inst->space), from = plain_space(inst->space2);
    int barriers_at = to == GM_SPACE_SHARED;
    uint32_t d = gm_lower_address(l, operand(l, 0), to), a = gm_lower_address(l, operand(l, 1), from);
    uint32_t bytes = gm_lower_source(l, operand(l, 2), 4), c = GM_NOWHERE, mask = GM_NOWHERE;
    if (barriers_at)
        c = gm_lower_address(l, operand(l, 3), GM_SPACE_SHARED);
    if (inst->mod[GM_FIELD_MULTICAST])
        mask = gm_lower_source(l, operand(l, 4), 2);
    gm_insn *in = gm_lower_emit(l, reduces ? GM_DO_bulk_reduce : GM_DO_bulk_copy);
    in->d = d, in->a = a, in->b = bytes, in->c = c, in->e = mask;
    in->k = to == GM_SPACE_GLOBAL ? GM_BULK_OUT : from == GM_SPACE_GLOBAL ? GM_BULK_IN : GM_BULK_WITHIN;
    if (reduces)
        in->f = gm_lower_atom(inst) | gm_lower_atom_type(inst->type[0]) << 8 |
                (uint32_t)(gm_ptx_types[inst->type[0]].bits / 8) << 16;
    in->x = gm_lower_site(l, GM_SITE_BULK, to, GM_ACCESS_LOAD, GM_HOW_READ, 16);
}

static void tensor(gm_lower *l)
{
    const gm_ptx_inst *inst = l->inst;
    int out = inst->space == GM_SPACE_GLOBAL;
    const gm_ptx_operand *shared = operand(l, out ? 1 : 0), *map = operand(l, out ? 0 : 1);
    uint32_t slots[5], n = 0, c = GM_NOWHERE, mask = GM_NOWHERE;
    uint32_t d = gm_lower_address(l, shared, GM_SPACE_SHARED), a = gm_lower_address(l, map, GM_SPACE_GENERIC);
    for (uint32_t i = 0; map->coordinates && i < map->n && i < 5; i++)
        slots[n++] = gm_lower_source(l, &map->coordinates[i], 4);
    if (!out)
        c = gm_lower_address(l, operand(l, 2), GM_SPACE_SHARED);
    if (inst->mod[GM_FIELD_MULTICAST])
        mask = gm_lower_source(l, operand(l, 3), 2);
    if (inst->mod[GM_FIELD_TILE] == GM_MOD_IM2COL) {
        gm_lower_refuse(l, "im2col copies");
        return;
    }
    uint32_t list = gm_lower_list(l, slots, n);
    gm_insn *in = gm_lower_emit(l, GM_DO_bulk_tensor);
    in->d = d, in->a = a, in->c = c, in->e = mask, in->n = (uint8_t)n, in->imm = list;
    in->k = out ? GM_BULK_OUT : GM_BULK_IN;
    in->x = gm_lower_site(l, GM_SITE_BULK, out ? GM_SPACE_GLOBAL : GM_SPACE_SHARED, GM_ACCESS_LOAD, GM_HOW_READ, 16);
}

/* --- matrices -------------------------------------------------------------------------------------------------- */

static int matrix_type(uint8_t type)
{
    switch (type) {
    case GM_PTX_F16:
        return GM_MATRIX_F16;
    case GM_PTX_BF16:
        return GM_MATRIX_BF16;
    case GM_PTX_TF32:
        return GM_MATRIX_TF32;
    case GM_PTX_E4M3:
        return GM_MATRIX_E4M3;
    case GM_PTX_E5M2:
        return GM_MATRIX_E5M2;
    case GM_PTX_U8:
        return GM_MATRIX_U8;
    case GM_PTX_S8:
        return GM_MATRIX_S8;
    case GM_PTX_U4:
        return GM_MATRIX_U4;
    case GM_PTX_S4:
        return GM_MATRIX_S4;
    case GM_PTX_B1:
        return GM_MATRIX_B1;
    default:
        return GM_MATRIX_F64;
    }
}

static void product(gm_lower *l)
{
    static const struct {
        uint8_t shape;
        uint16_t rows, depth;
    } shapes[] = {{GM_MOD_M8N8K4, 8, 4},       {GM_MOD_M8N8K16, 8, 16},    {GM_MOD_M8N8K32, 8, 32},
                  {GM_MOD_M8N8K128, 8, 128},   {GM_MOD_M16N8K4, 16, 4},    {GM_MOD_M16N8K8, 16, 8},
                  {GM_MOD_M16N8K16, 16, 16},   {GM_MOD_M16N8K32, 16, 32},  {GM_MOD_M16N8K64, 16, 64},
                  {GM_MOD_M16N8K128, 16, 128}, {GM_MOD_M16N8K256, 16, 256}};
    const gm_ptx_inst *inst = l->inst;
    uint32_t slots[40], n = 0, rows = 0, depth = 0, counts = 0;
    for (uint32_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        if (shapes[k].shape == inst->mod[GM_FIELD_SHAPE])
            rows = shapes[k].rows, depth = shapes[k].depth;
    int ta = matrix_type(inst->type[1]), tb = matrix_type(inst->type[2]);
    uint8_t result = inst->type[0];
    if (rows == 0 || (rows == 8 && depth == 4 && ta != GM_MATRIX_F64) || result != inst->type[3]) {
        gm_lower_named(l, "?");
        return;
    }
    for (uint32_t o = 1; o <= 4; o++) { /* a, b, c, then d */
        const gm_ptx_operand *one = operand(l, o % 4);
        uint32_t count = one->kind == GM_OPERAND_VECTOR ? one->n : 1;
        for (uint32_t k = 0; k < count && n < 40; k++) {
            const gm_ptx_operand *r = one->kind == GM_OPERAND_VECTOR ? &one->elements[k] : one;
            uint32_t bytes = result == GM_PTX_F64 ? 8 : 4;
            slots[n++] = o == 4 ? gm_lower_destination(l, r, bytes) : gm_lower_source(l, r, bytes);
            counts += 1u << 8 * (o - 1);
        }
    }
    uint32_t list = gm_lower_list(l, slots, n);
    gm_insn *in = gm_lower_emit(l, GM_DO_mma);
    in->a = list, in->k = (uint8_t)rows, in->imm = depth, in->e = counts;
    in->b = (uint32_t)ta | (uint32_t)tb << 8;
    in->c = result == GM_PTX_F32 ? 0 : result == GM_PTX_F16 ? 1 : result == GM_PTX_S32 ? 2 : 3;
    uint8_t mod = inst->mod[GM_FIELD_BOOL] ? inst->mod[GM_FIELD_BOOL] : inst->mod[GM_FIELD_OP];
    in->n = (uint8_t)((ta == GM_MATRIX_B1 ? (mod == GM_MOD_AND ? 1 : 2) : 0) | (inst->mod[GM_FIELD_SAT] ? 4 : 0));
}

/* --- wmma ------------------------------------------------------------------------------------------------------ */

static void wmma_shape(const gm_lower *l, uint32_t *m, uint32_t *n, uint32_t *k)
{
    uint8_t shape = l->inst->mod[GM_FIELD_SHAPE];
    *m = shape == GM_MOD_M8N32K16 || shape == GM_MOD_M8N8K4 ? 8 : shape == GM_MOD_M32N8K16 ? 32 : 16;
    *n = shape == GM_MOD_M8N32K16 ? 32 : shape == GM_MOD_M32N8K16 || shape == GM_MOD_M8N8K4 ? 8 : 16;
    *k = shape == GM_MOD_M16N16K8 ? 8 : shape == GM_MOD_M8N8K4 ? 4 : 16;
}

static uint32_t registers(gm_lower *l, const gm_ptx_operand *o, uint32_t bytes, int reads, uint32_t *slots)
{
    uint32_t count = o->kind == GM_OPERAND_VECTOR ? o->n : 1;
    for (uint32_t k = 0; k < count && k < 8; k++) {
        const gm_ptx_operand *r = o->kind == GM_OPERAND_VECTOR ? &o->elements[k] : o;
        slots[k] = reads ? gm_lower_source(l, r, bytes) : gm_lower_destination(l, r, bytes);
    }
    return count < 8 ? count : 8;
}

static void wmma_move(gm_lower *l, uint16_t op)
{
    const gm_ptx_inst *inst = l->inst;
    int stores = op == GM_OP_WMMA_STORE_D;
    uint32_t m, n, k, slots[8], bytes = (uint32_t)gm_ptx_types[inst->type[0]].bits / 8;
    wmma_shape(l, &m, &n, &k);
    uint32_t rows = op == GM_OP_WMMA_LOAD_B ? k : m, columns = op == GM_OP_WMMA_LOAD_A ? k : n;
    const gm_ptx_operand *stride = operand(l, 2);
    gm_space space = inst->space == GM_SPACE_SHARED_CLUSTER ? GM_SPACE_SHARED : (gm_space)inst->space;
    uint32_t address = gm_lower_address(l, operand(l, stores ? 0 : 1), space);
    uint32_t leading = stride->kind == GM_OPERAND_NONE ? GM_NOWHERE : gm_lower_source(l, stride, 4);
    uint32_t count = registers(l, operand(l, stores ? 1 : 0), bytes == 8 ? 8 : 4, stores, slots);
    uint32_t list = gm_lower_list(l, slots, count);
    gm_insn *in = gm_lower_emit(l, GM_DO_wmma_move);
    in->a = address, in->b = leading, in->d = list, in->n = (uint8_t)count, in->e = bytes, in->f = space;
    in->c = rows | columns << 8 | (uint32_t)(inst->mod[GM_FIELD_LAYOUT] == GM_MOD_COL) << 16;
    in->k = (uint8_t)stores;
    in->x = gm_lower_site(l, GM_SITE_BULK, space, GM_ACCESS_LOAD, stores ? GM_HOW_WRITE : GM_HOW_READ, bytes);
}

static int accumulator_type(uint8_t type)
{
    return type == GM_PTX_F16   ? GM_MATRIX_F16
           : type == GM_PTX_F32 ? GM_MATRIX_F32
           : type == GM_PTX_S32 ? GM_MATRIX_S32
                                : GM_MATRIX_F64;
}

static void wmma_product(gm_lower *l)
{
    const gm_ptx_inst *inst = l->inst;
    uint32_t m, n, k, slots[32], at = 0, bytes = inst->type[0] == GM_PTX_F64 ? 8 : 4;
    int halves = inst->type[2] == GM_PTX_NO_TYPE; /* .f16.f32: D and C alone are named */
    int64_t counts = 0;
    wmma_shape(l, &m, &n, &k);
    for (uint32_t o = 1; o <= 4; o++) {
        uint32_t count = registers(l, operand(l, o % 4), bytes, o != 4, slots + at);
        counts |= (int64_t)count << 8 * (o - 1);
        at += count;
    }
    uint32_t list = gm_lower_list(l, slots, at);
    gm_insn *in = gm_lower_emit(l, GM_DO_wmma_product);
    in->a = list, in->imm = counts, in->c = m | n << 8 | k << 16;
    in->b = (uint32_t)(halves ? GM_MATRIX_F16 : matrix_type(inst->type[1])) |
            (uint32_t)accumulator_type(inst->type[halves ? 1 : 3]) << 8 |
            (uint32_t)accumulator_type(inst->type[0]) << 16;
    in->n = inst->mod[GM_FIELD_SAT] ? 4 : 0;
}

void gm_lower_async(gm_lower *l)
{
    switch (l->inst->op) {
    case GM_OP_WMMA_LOAD_A:
    case GM_OP_WMMA_LOAD_B:
    case GM_OP_WMMA_LOAD_C:
    case GM_OP_WMMA_STORE_D:
        wmma_move(l, l->inst->op);
        break;
    case GM_OP_WMMA_MMA:
        wmma_product(l);
        break;
    case GM_OP_VABSDIFF2:
    case GM_OP_VABSDIFF4: {
        uint32_t a = gm_lower_source(l, operand(l, 1), 4), b = gm_lower_source(l, operand(l, 2), 4);
        uint32_t c = gm_lower_source(l, operand(l, 3), 4);
        gm_insn *in = gm_lower_emit(l, l->inst->op == GM_OP_VABSDIFF2 ? GM_DO_vabsdiff2_b32 : GM_DO_vabsdiff4_b32);
        in->a = a, in->b = b, in->c = c, in->d = gm_lower_destination(l, operand(l, 0), 4);
        in->k = (uint8_t)((l->inst->type[1] == GM_PTX_S32) | (l->inst->type[2] == GM_PTX_S32) << 1);
        in->n = l->inst->mod[GM_FIELD_OP] == GM_MOD_ADD;
        break;
    }
    case GM_OP_CP_ASYNC_BULK:
        copy(l, 0);
        break;
    case GM_OP_CP_REDUCE_ASYNC_BULK:
        copy(l, 1);
        break;
    case GM_OP_CP_ASYNC_BULK_TENSOR:
        tensor(l);
        break;
    case GM_OP_CP_ASYNC_BULK_COMMIT:
    case GM_OP_CP_ASYNC_BULK_WAIT:
        break; /* the copies are done */
    case GM_OP_MMA:
        product(l);
        break;
    default:
        if (!barrier(l))
            gm_lower_named(l, "?");
    }
}
