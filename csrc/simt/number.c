/* Constant expressions: C's operators on 64-bit integers and doubles, and PTX's own way to write a float's bits. */
#include "read.h"
#include <stdlib.h>
#include <string.h>

static double real_of(const gm_number *n)
{
    if (n->kind >= NUMBER_SINGLE)
        return n->real;
    return n->kind == NUMBER_SIGNED ? (double)(int64_t)n->bits : (double)n->bits;
}

static gm_number integer(uint64_t bits, int is_unsigned)
{
    return (gm_number){is_unsigned ? NUMBER_UNSIGNED : NUMBER_SIGNED, bits, 0};
}

static gm_number real(double value)
{
    return (gm_number){NUMBER_DOUBLE, 0, value};
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
}

/* `size` digits of this base; 0 where one is none, or the value has more than 64 bits. */
static int digits(const char *p, size_t size, unsigned base, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned digit = (unsigned)digit_of(p[i]);
        if (digit >= base || *value > (UINT64_MAX - digit) / base)
            return 0;
        *value = *value * base + digit;
    }
    return size > 0;
}

/* 0f3F800000 and 0d3FF0000000000000, the bits of a float. */
static int float_bits(const char *p, size_t size, gm_number *n)
{
    uint64_t bits;
    if (!digits(p + 2, size - 2, 16, &bits))
        return 0;
    if ((p[1] | 32) == 'f' && size == 10) {
        uint32_t narrow = (uint32_t)bits;
        float value;
        memcpy(&value, &narrow, sizeof value);
        *n = (gm_number){NUMBER_SINGLE, bits, value};
        return 1;
    }
    *n = real(0);
    memcpy(&n->real, &bits, sizeof bits);
    return (p[1] | 32) == 'd' && size == 18;
}

static int decimal_float(gm_reader *r, const char *p, size_t size, gm_number *n)
{
    char copy[64], *stop;
    if (size >= sizeof copy)
        return 0;
    memcpy(copy, p, size);
    copy[size] = 0;
    *n = real(strtod_l(copy, &stop, r->c_locale));
    return stop == copy + size;
}

static int literal(gm_reader *r, gm_number *n)
{
    const gm_token t = r->token;
    const char *p = t.start;
    size_t size = t.size;
    uint64_t value;
    int ok, is_unsigned = 0;

    if (size > 2 && p[0] == '0' && ((p[1] | 32) == 'f' || (p[1] | 32) == 'd')) {
        ok = float_bits(p, size, n);
    } else if (memchr(p, '.', size) || (!(size > 1 && p[0] == '0' && (p[1] | 32) == 'x') && memchr(p, 'e', size)) ||
               (!(size > 1 && p[0] == '0' && (p[1] | 32) == 'x') && memchr(p, 'E', size))) {
        ok = decimal_float(r, p, size, n);
    } else {
        if (size > 1 && p[size - 1] == 'U') {
            is_unsigned = 1;
            size--;
        }
        if (size > 2 && p[0] == '0' && ((p[1] | 32) == 'x' || (p[1] | 32) == 'b'))
            ok = digits(p + 2, size - 2, (p[1] | 32) == 'x' ? 16 : 2, &value);
        else
            ok = digits(p, size, size > 1 && p[0] == '0' ? 8 : 10, &value);
        *n = integer(value, is_unsigned || value > INT64_MAX);
    }
    if (!ok)
        return gm_read_fail(r, GM_PTX_MALFORMED, &t, "no number that PTX knows");
    return gm_read_next(r);
}

static int expression(gm_reader *r, gm_number *n, int least, int depth);

static int unary(gm_reader *r, gm_number *n, int depth)
{
    const gm_token t = r->token;
    if (depth > NESTING)
        return gm_read_fail(r, GM_PTX_TOO_LARGE, &t, "an expression that is nested deeper than %d", NESTING);
    if (t.kind == TOKEN_NUMBER)
        return literal(r, n);
    if (t.kind == TOKEN_NAME && gm_token_equal(&t, "WARP_SZ")) {
        *n = integer(32, 0);
        return gm_read_next(r);
    }
    if (t.kind != TOKEN_MARK || !strchr("+-!~(", t.mark) || t.mark > 127)
        return gm_read_fail(r, GM_PTX_MALFORMED, &t, "a number is missing here");
    if (!gm_read_next(r))
        return 0;
    if (t.mark == '(') {
        int to_signed = gm_read_word_is(r, "s64"), to_unsigned = gm_read_word_is(r, "u64");
        if (!to_signed && !to_unsigned)
            return expression(r, n, 0, depth + 1) && gm_read_expect(r, ')');
        if (!gm_read_next(r) || !gm_read_expect(r, ')') || !unary(r, n, depth + 1))
            return 0;
        if (n->kind >= NUMBER_SINGLE)
            return gm_read_fail(r, GM_PTX_MALFORMED, &t, "a float cannot be cast");
        *n = integer(n->bits, to_unsigned);
        return 1;
    }
    if (!unary(r, n, depth + 1))
        return 0;
    int is_float = n->kind >= NUMBER_SINGLE;
    if (t.mark == '!')
        *n = integer(is_float ? n->real == 0 : n->bits == 0, 0);
    else if (t.mark == '~' && is_float)
        return gm_read_fail(r, GM_PTX_MALFORMED, &t, "~ is for integers");
    else if (t.mark == '~')
        n->bits = ~n->bits;
    else if (t.mark == '-' && n->kind == NUMBER_SINGLE)
        *n = (gm_number){NUMBER_SINGLE, n->bits ^ UINT64_C(0x80000000), -n->real};
    else if (t.mark == '-' && is_float)
        n->real = -n->real;
    else if (t.mark == '-')
        n->bits = 0 - n->bits;
    return 1;
}

#define TWO(a, b) ((a) << 8 | (b))
static const struct {
    int mark, level;
} operators[] = {
    {TWO('|', '|'), 1}, {TWO('&', '&'), 2}, {'|', 3}, {'^', 4},           {'&', 5},           {TWO('=', '='), 6},
    {TWO('!', '='), 6}, {'<', 7},           {'>', 7}, {TWO('<', '='), 7}, {TWO('>', '='), 7}, {TWO('<', '<'), 8},
    {TWO('>', '>'), 8}, {'+', 9},           {'-', 9}, {'*', 10},          {'/', 10},          {'%', 10},
};

static int level_of(const gm_token *t)
{
    for (size_t i = 0; t->kind == TOKEN_MARK && i < sizeof operators / sizeof *operators; i++)
        if (operators[i].mark == t->mark)
            return operators[i].level;
    return 0;
}

static int compare(int mark, int less, int equal)
{
    switch (mark) {
    case '<':
        return less;
    case '>':
        return !less && !equal;
    case TWO('<', '='):
        return less || equal;
    case TWO('>', '='):
        return !less;
    case TWO('=', '='):
        return equal;
    default:
        return !equal;
    }
}

static int apply_real(gm_reader *r, const gm_token *op, gm_number *a, const gm_number *b)
{
    double x = real_of(a), y = real_of(b);
    int level = level_of(op);
    if (op->mark == '+' || op->mark == '-')
        *a = real(op->mark == '+' ? x + y : x - y);
    else if (op->mark == '*')
        *a = real(x * y);
    else if (op->mark == '/' && y != 0)
        *a = real(x / y);
    else if (level == 6 || level == 7)
        *a = integer((uint64_t)compare(op->mark, x < y, x == y), 0);
    else if (level <= 2)
        *a = integer(level == 2 ? x != 0 && y != 0 : x != 0 || y != 0, 0);
    else
        return gm_read_fail(r, GM_PTX_MALFORMED, op, "an operator that floats do not have, or a division by zero");
    return 1;
}

static int apply_integer(gm_reader *r, const gm_token *op, gm_number *a, const gm_number *b)
{
    uint64_t x = a->bits, y = b->bits;
    int is_unsigned = a->kind == NUMBER_UNSIGNED || b->kind == NUMBER_UNSIGNED;
    int negative = !is_unsigned && (int64_t)x < 0;

    switch (op->mark) {
    case '+':
        x += y;
        break;
    case '-':
        x -= y;
        break;
    case '*':
        x *= y;
        break;
    case '/':
    case '%':
        if (!y)
            return gm_read_fail(r, GM_PTX_MALFORMED, op, "a division by zero");
        if (is_unsigned)
            x = op->mark == '/' ? x / y : x % y;
        else if ((int64_t)y == -1) /* the quotient of the least integer would have no place */
            x = op->mark == '/' ? 0 - x : 0;
        else
            x = (uint64_t)(op->mark == '/' ? (int64_t)x / (int64_t)y : (int64_t)x % (int64_t)y);
        break;
    case '&':
        x &= y;
        break;
    case '^':
        x ^= y;
        break;
    case '|':
        x |= y;
        break;
    case TWO('<', '<'):
        x = y < 64 ? x << y : 0;
        is_unsigned = a->kind == NUMBER_UNSIGNED;
        break;
    case TWO('>', '>'):
        is_unsigned = a->kind == NUMBER_UNSIGNED;
        negative = !is_unsigned && (int64_t)x < 0;
        x = y < 64 ? x >> y : 0;
        if (negative)
            x |= y ? ~(uint64_t)0 << (y < 64 ? 64 - y : 0) : 0;
        break;
    case TWO('&', '&'):
        x = x && y;
        is_unsigned = 0;
        break;
    case TWO('|', '|'):
        x = x || y;
        is_unsigned = 0;
        break;
    default:
        x = (uint64_t)compare(op->mark, is_unsigned ? x < y : (int64_t)x < (int64_t)y, x == y);
        is_unsigned = 0;
    }
    *a = integer(x, is_unsigned);
    return 1;
}

/* Everything that binds at least as strongly as `least`; 0 takes the choice a ? b : c too. */
static int expression(gm_reader *r, gm_number *n, int least, int depth)
{
    if (!unary(r, n, depth))
        return 0;
    for (int level; (level = level_of(&r->token)) && level >= least;) {
        const gm_token op = r->token;
        gm_number other;
        if (!gm_read_next(r) || !expression(r, &other, level + 1, depth + 1))
            return 0;
        int is_float = n->kind >= NUMBER_SINGLE || other.kind >= NUMBER_SINGLE;
        if (!(is_float ? apply_real : apply_integer)(r, &op, n, &other))
            return 0;
    }
    if (least > 0 || !gm_read_is(r, '?'))
        return 1;
    gm_number yes, no;
    int taken = n->kind >= NUMBER_SINGLE ? n->real != 0 : n->bits != 0;
    if (!gm_read_next(r) || !expression(r, &yes, 0, depth + 1) || !gm_read_expect(r, ':') ||
        !expression(r, &no, 0, depth + 1))
        return 0;
    *n = taken ? yes : no;
    return 1;
}

int gm_read_number(gm_reader *r, gm_number *number, int term)
{
    return expression(r, number, term ? 10 : 0, 0);
}

static int within(gm_reader *r, const gm_number *n, uint64_t least, uint64_t most, uint64_t *value, const char *what,
                  const gm_token *at)
{
    int negative = n->kind == NUMBER_SIGNED && (int64_t)n->bits < 0;
    if (n->kind >= NUMBER_SINGLE || negative || n->bits < least || n->bits > most)
        return gm_read_fail(
            r, n->kind < NUMBER_SINGLE && !negative && n->bits > most ? GM_PTX_TOO_LARGE : GM_PTX_MALFORMED, at,
            "%s must be a number from %llu to %llu", what, (unsigned long long)least, (unsigned long long)most);
    *value = n->bits;
    return 1;
}

int gm_read_integer(gm_reader *r, uint64_t least, uint64_t most, uint64_t *value, const char *what)
{
    const gm_token at = r->token;
    gm_number n;
    return gm_read_number(r, &n, 0) && within(r, &n, least, most, value, what, &at);
}

int gm_read_integer_token(gm_reader *r, uint64_t least, uint64_t most, uint64_t *value, const char *what)
{
    const gm_token at = r->token;
    gm_number n;
    if (at.kind != TOKEN_NUMBER)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "a number is missing here");
    return literal(r, &n) && within(r, &n, least, most, value, what, &at);
}

int gm_number_as(const gm_number *n, gm_ptx_type type, uint64_t *bits)
{
    const gm_ptx_type_info *info = &gm_ptx_types[type];
    int is_float = n->kind >= NUMBER_SINGLE;
    float narrow = (float)n->real;
    uint32_t narrow_bits;

    memcpy(&narrow_bits, &narrow, sizeof narrow);
    if (n->kind == NUMBER_SINGLE)
        narrow_bits = (uint32_t)n->bits; /* NaNs keep theirs */
    if (!is_float && info->kind != GM_KIND_FLOAT)
        *bits = info->bits >= 64 ? n->bits : n->bits & (((uint64_t)1 << info->bits) - 1);
    else if (!is_float)
        return 0;
    else if (type == GM_PTX_F32 || (type == GM_PTX_B32 && n->kind == NUMBER_SINGLE))
        *bits = narrow_bits;
    else if (type == GM_PTX_F64 || (type == GM_PTX_B64 && n->kind == NUMBER_DOUBLE))
        memcpy(bits, &n->real, sizeof *bits);
    else
        return 0;
    return 1;
}
