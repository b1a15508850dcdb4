/* Tokens of PTX, and the one function that words a failure. */
#include "read.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What of a line is shown: enough for any that a compiler writes. */
enum { SHOWN = 160, LEAD = 100 };

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The token's line, from at most LEAD bytes before it, with other than plain characters made spaces (a terminal would
 * obey them), and a caret below. */
static void quote(const gm_reader *r, const gm_token *at, char *to, size_t size)
{
    const char *begin = at->line_start, *end = at->start;
    if (at->start - begin > LEAD)
        begin = at->start - LEAD;
    while (end < r->end && *end != '\n' && *end != '\r' && end - begin < SHOWN)
        end++;
    size_t lead = (size_t)(at->start - begin), shown = (size_t)(end - begin);
    size_t wave = at->size ? at->size : 1;
    if (wave > shown - lead)
        wave = shown - lead ? shown - lead : 1;
    if (size < 2 * (shown + 8) + wave)
        return;

    char *line = to, *caret = to + shown + 5;
    memcpy(line, "    ", 4);
    for (size_t i = 0; i < shown; i++)
        line[4 + i] = (unsigned char)begin[i] < ' ' || (unsigned char)begin[i] > '~' ? ' ' : begin[i];
    line[4 + shown] = '\n';
    memset(caret, ' ', 4 + lead);
    caret[4 + lead] = '^';
    memset(caret + 5 + lead, '~', wave - 1);
    caret[4 + lead + wave] = 0;
}

void gm_read_say(gm_reader *r, gm_status status, const gm_token *at, const char *format, ...)
{
    char *text = r->failure->text;
    size_t size = sizeof r->failure->text;
    unsigned column = (unsigned)(at->start - at->line_start) + 1;
    va_list given;

    r->status = r->failure->status = status;
    size_t used = (size_t)snprintf(text, size, "%.200s:%u:%u: ", r->name, at->line, column);
    va_start(given, format);
    int more = vsnprintf(text + used, size - used, format, given);
    va_end(given);
    used = more < 0 || used + (size_t)more >= size ? size - 1 : used + (size_t)more;
    if (used + 2 < size) {
        text[used++] = '\n';
        text[used] = 0;
        quote(r, at, text + used, size - used);
    }
}

/* Past white space and comments; line ends are counted here. */
static int skip(gm_reader *r)
{
    for (;;) {
        const char *p = r->at, *end = r->end;
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\f' || *p == '\v'))
            p++;
        if (p < end && *p == '\n') {
            r->line++;
            r->line_start = r->at = p + 1;
        } else if (p + 1 < end && p[0] == '/' && p[1] == '/') {
            const char *stop = memchr(p, '\n', (size_t)(end - p));
            r->at = stop ? stop : end;
        } else if (p + 1 < end && p[0] == '/' && p[1] == '*') {
            gm_token open = {TOKEN_MARK, 0, r->line, 2, p, r->line_start};
            for (p += 2; p + 1 < end && !(p[0] == '*' && p[1] == '/'); p++)
                if (*p == '\n') {
                    r->line++;
                    r->line_start = p + 1;
                }
            if (p + 1 >= end)
                return gm_read_fail(r, GM_PTX_MALFORMED, &open, "this comment has no end");
            r->at = p + 2;
        } else {
            r->at = p;
            return 1;
        }
    }
}

/* The end of a number: digits and letters, points, and signs behind a decimal exponent. What it means is number.c's. */
static const char *number_end(const char *p, const char *end)
{
    int hexadecimal = p + 1 < end && p[0] == '0' && (p[1] | 32) >= 'a' && (p[1] | 32) <= 'z';
    for (; p < end; p++)
        if (!is_digit(*p) && !((*p | 32) >= 'a' && (*p | 32) <= 'z') && *p != '.' && *p != '_' && *p != '$' &&
            !((*p == '+' || *p == '-') && !hexadecimal && (p[-1] | 32) == 'e'))
            break;
    return p;
}

static int text_token(gm_reader *r, gm_token *t)
{
    const char *p = r->at + 1;
    while (p < r->end && *p != '"' && *p != '\n')
        p += *p == '\\' && p + 1 < r->end && p[1] != '\n' ? 2 : 1;
    if (p >= r->end || *p != '"')
        return gm_read_fail(r, GM_PTX_MALFORMED, t, "this string has no end");
    t->kind = TOKEN_STRING;
    t->start = r->at + 1;
    t->size = (uint32_t)(p - t->start);
    r->at = p + 1;
    return 1;
}

int gm_read_next(gm_reader *r)
{
    static const char pairs[][3] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    if (!skip(r))
        return 0;
    gm_token *t = &r->token;
    const char *p = r->at, *end = r->end;
    *t = (gm_token){TOKEN_END, 0, r->line, 0, p, r->line_start};
    if (p >= end)
        return 1;
    if (*p == '"')
        return text_token(r, t);
    if (is_letter(*p)) {
        t->kind = TOKEN_NAME;
        while (p < end && (is_letter(*p) || is_digit(*p)) && (*p != '%' || p == t->start))
            p++;
        if (p - t->start == 1 && *t->start == '%') {
            t->kind = TOKEN_MARK;
            t->mark = '%';
        }
    } else if (is_digit(*p)) {
        t->kind = TOKEN_NUMBER;
        p = number_end(p, end);
    } else if (*p == '.' && p + 1 < end && (is_letter(p[1]) || is_digit(p[1])) && p[1] != '%') {
        t->kind = TOKEN_WORD;
        t->start = ++p;
        while (p < end &&
               (is_letter(*p) || is_digit(*p) ||
                (p + 2 < end && p[0] == ':' && p[1] == ':' && (is_letter(p[2]) || is_digit(p[2])))) &&
               *p != '%')
            p += *p == ':' ? 2 : 1;
    } else {
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~') {
            t->size = 1;
            return gm_read_fail(r, GM_PTX_MALFORMED, t, "byte 0x%02x outside of a comment", (unsigned char)*p);
        }
        t->kind = TOKEN_MARK;
        t->mark = (uint8_t)*p++;
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (p < end && t->mark == pairs[i][0] && *p == pairs[i][1]) {
                t->mark = (uint16_t)(t->mark << 8 | (uint8_t)*p++);
                break;
            }
    }
    t->size = (uint32_t)(p - t->start);
    r->at = p;
    return 1;
}

int gm_token_equal(const gm_token *token, const char *text)
{
    return strlen(text) == token->size && !memcmp(token->start, text, token->size);
}

int gm_read_is(const gm_reader *r, int mark)
{
    return r->token.kind == TOKEN_MARK && r->token.mark == mark;
}

int gm_read_word_is(const gm_reader *r, const char *word)
{
    return r->token.kind == TOKEN_WORD && gm_token_equal(&r->token, word);
}

int gm_read_accept(gm_reader *r, int mark, int *taken)
{
    *taken = gm_read_is(r, mark);
    return *taken ? gm_read_next(r) : 1;
}

int gm_read_expect(gm_reader *r, int mark)
{
    if (!gm_read_is(r, mark))
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "'%c' is missing here", mark);
    return gm_read_next(r);
}
