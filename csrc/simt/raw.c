/* The operands of an instruction as they are written, before anybody asks what they mean. */
#include "read.h"
#include <string.h>

/* What is added to a name: + 4 - 2 ... */
static int added(gm_reader *r, gm_number *sum)
{
    *sum = (gm_number){NUMBER_SIGNED, 0, 0};
    while (gm_read_is(r, '+') || gm_read_is(r, '-')) {
        int minus = gm_read_is(r, '-');
        const gm_token at = r->token;
        gm_number term;
        if (!gm_read_next(r) || !gm_read_number(r, &term, 1))
            return 0;
        if (term.kind >= NUMBER_SINGLE)
            return gm_read_fail(r, GM_PTX_MALFORMED, &at, "an integer is needed here");
        sum->bits = minus ? sum->bits - term.bits : sum->bits + term.bits;
    }
    return 1;
}

/* %tid.x is one name; %v.x is the first component of a vector register. */
static int name_operand(gm_reader *r, gm_raw *raw)
{
    static const char components[] = "xyzwrgba";
    char joined[64];
    const gm_token name = r->token;

    if (!gm_read_next(r))
        return 0;
    raw->kind = gm_token_equal(&name, "_") ? RAW_SINK : RAW_NAME;
    if (r->token.kind != TOKEN_WORD) {
        raw->name = gm_read_atom(r, name.start, name.size);
        return raw->name && (raw->kind == RAW_SINK || added(r, &raw->number));
    }
    if (name.size + r->token.size + 1 < sizeof joined) {
        memcpy(joined, name.start, name.size);
        joined[name.size] = '.';
        memcpy(joined + name.size + 1, r->token.start, r->token.size);
        raw->name = gm_read_atom(r, joined, name.size + r->token.size + 1);
        if (!raw->name)
            return 0;
        if (raw->name->special)
            return gm_read_next(r);
    }
    const char *component = memchr(components, *r->token.start, 8);
    if (r->token.size != 1 || !component)
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "%.*s has no part .%.*s", (int)(name.size & 255),
                            name.start, (int)(r->token.size & 255), r->token.start);
    raw->component = (uint8_t)(1 + (component - components) % 4);
    raw->name = gm_read_atom(r, name.start, name.size);
    return raw->name && gm_read_next(r);
}

static int one_operand(gm_reader *r, gm_raw *raw, int nested);

/* Elements up to `close`. None has parts of its own, so they stand side by side in scratch. */
static int elements(gm_reader *r, gm_raw *raw, int close)
{
    const gm_token open = r->token;
    if (!gm_read_next(r))
        return 0;
    int more = !(close == ')' && gm_read_is(r, close));
    for (raw->first = r->scratch.n; more; raw->n++) {
        gm_raw one, *place;
        if (raw->n == ELEMENT_LIMIT)
            return gm_read_fail(r, GM_PTX_TOO_LARGE, &open, "more than %d elements", ELEMENT_LIMIT);
        if (!one_operand(r, &one, 1) || !(place = gm_read_push(r, &r->scratch, sizeof *place)))
            return 0;
        *place = one;
        if (!gm_read_accept(r, ',', &more))
            return 0;
    }
    return gm_read_expect(r, close);
}

/* [name + 4], [4096], [map, {x, y}] */
static int address(gm_reader *r, gm_raw *raw)
{
    int more;
    if (!gm_read_next(r))
        return 0;
    if (r->token.kind == TOKEN_NAME) {
        if (!name_operand(r, raw))
            return 0;
        if (raw->kind != RAW_NAME || raw->component)
            return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "no address");
    } else if (!gm_read_number(r, &raw->number, 0)) {
        return 0;
    }
    raw->kind = RAW_ADDRESS;
    if (raw->number.kind >= NUMBER_SINGLE)
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "an address is an integer");
    if (!gm_read_accept(r, ',', &more))
        return 0;
    if (more) {
        raw->has_coordinates = 1;
        if (!gm_read_is(r, '{'))
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "the coordinates { } are missing here");
        if (!elements(r, raw, '}'))
            return 0;
    }
    return gm_read_expect(r, ']');
}

static int one_operand(gm_reader *r, gm_raw *raw, int nested)
{
    *raw = (gm_raw){.at = r->token};
    if (!nested && gm_read_is(r, '['))
        return address(r, raw);
    if (!nested && (gm_read_is(r, '{') || gm_read_is(r, '('))) {
        raw->kind = gm_read_is(r, '{') ? RAW_VECTOR : RAW_ARGUMENTS;
        return elements(r, raw, gm_read_is(r, '{') ? '}' : ')');
    }
    if (gm_read_is(r, '!')) {
        raw->negated = 1;
        if (!gm_read_next(r))
            return 0;
        if (r->token.kind != TOKEN_NAME)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a predicate is missing here");
    }
    if (r->token.kind == TOKEN_NAME && !gm_token_equal(&r->token, "WARP_SZ"))
        return name_operand(r, raw);
    raw->kind = RAW_NUMBER;
    return gm_read_number(r, &raw->number, 0);
}

/* `(` opens arguments for call, and an expression for everybody else. */
int gm_read_raw_operands(gm_reader *r, gm_raw *raws, uint32_t *n, int is_call)
{
    int more = !gm_read_is(r, ';');
    *n = 0;
    r->scratch.n = 0;
    while (more) {
        gm_raw *raw = &raws[*n];
        if (*n == RAW_OPERANDS)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "more operands than any instruction has");
        if (!is_call && gm_read_is(r, '(')) {
            *raw = (gm_raw){.kind = RAW_NUMBER, .at = r->token};
            if (!gm_read_number(r, &raw->number, 0))
                return 0;
        } else if (!one_operand(r, raw, 0)) {
            return 0;
        }
        ++*n;
        if (gm_read_is(r, '|') && (raw->kind == RAW_NAME || raw->kind == RAW_SINK)) {
            gm_raw second = {0}, *place;
            if (!gm_read_next(r) || !one_operand(r, &second, 1) ||
                !(place = gm_read_push(r, &r->scratch, sizeof second)))
                return 0;
            *place = second;
            raw->second = r->scratch.n;
        }
        if (!gm_read_accept(r, ',', &more))
            return 0;
    }
    return gm_read_expect(r, ';');
}
