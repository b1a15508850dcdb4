/* Where a warp goes next. What is common is here; lanes that go different ways are warp.c's. */

/* The instructions of a block are counted when it begins. */
#define BEGIN_BLOCK                                                                                                    \
    gm_lens_ran *ran = &w->ran[in->x];                                                                                 \
    w->budget -= in->imm;                                                                                              \
    ran->warps++;                                                                                                      \
    ran->lanes += (u32)__builtin_popcount(w->active);                                                                  \
    return __builtin_expect(w->budget < 0, 0) ? gm_warp_turn(w, in + 1) : in + 1

HANDLER(block)
{
    BEGIN_BLOCK;
}

HANDLER(join_block)
{
    if (w->now.join && w->now.join->at == in && w->now.join->frame == w->now.frame)
        return gm_warp_join(w, in);
    BEGIN_BLOCK;
}

HANDLER(bra)
{
    TAKE_PART;
    if (lanes == w->active)
        return w->code + in->x;
    if (lanes == 0)
        return in + 1;
    return gm_warp_diverge(w, in, lanes);
}

HANDLER(bra_uni)
{
    return w->code + in->x;
}

HANDLER(brx)
{
    return gm_warp_branch_table(w, in, SLOT(u32, in->a));
}

HANDED_ON(call, gm_warp_call(w, in, lanes))
HANDED_ON(call_through, gm_warp_call_through(w, in, lanes))
HANDED_ON(ret, gm_warp_return(w, in, lanes))
HANDED_ON(exit, gm_warp_exit(w, in, lanes))

HANDLER(trap)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    gm_stop(w->worker->run, GM_LENS_LIMIT, "the kernel executed trap");
    return gm_warp_exit(w, in, lanes);
}

HANDLER(nop)
{
    return in + 1;
}
