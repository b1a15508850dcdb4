/* Dealing (deal.h) where masks can put a line together from the end of one run and the beginning of the next. */
#if GM_AVX512
static inline __mmask64 deal_below(int64_t n)
{
    return _bzhi_u64(~UINT64_C(0), (unsigned)n);
}

static void deal_round(const gm_deal *round)
{
    const char *src = round->src, *ask = round->ask;
    for (int64_t i = 0; i < round->count; i++, src += round->bytes, ask += round->bytes) {
        char *to = round->dst + round->at[i];
        int64_t waiting = (int64_t)((uintptr_t)to & 63), left = waiting + round->bytes, done = 64;
        const char *from = src - waiting;
        __mmask64 ours = ~deal_below(waiting);
        __m512i *carry = (__m512i *)round->carry + i, line = _mm512_mask_loadu_epi8(*carry, ours, from);

        to -= waiting;
        if (round->first && waiting)
            _mm512_mask_storeu_epi8(to, ours, line);
        else
            _mm512_stream_si512((__m512i *)to, line);
        _mm_prefetch(ask, _MM_HINT_T1);
        for (; done + 64 <= left; done += 64) {
            _mm_prefetch(ask + done, _MM_HINT_T1);
            _mm512_stream_si512((__m512i *)(to + done), _mm512_loadu_si512(from + done));
        }
        line = _mm512_maskz_loadu_epi8(deal_below(left - done), from + done);
        *carry = line;
        if (round->last)
            _mm512_mask_storeu_epi8(to + done, deal_below(left - done), line);
    }
}
#else
#    define deal_round NULL
#endif
