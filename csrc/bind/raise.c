#include "raise.h"
#include <stdarg.h>

static const struct {
    PyObject **exception;
    const char *text;
} table[GM_STATUS_COUNT] = {
    {NULL, NULL},
#define GM_STATUS(name, exception, text) {&PyExc_##exception, text},
#include "../base/status.def"
#undef GM_STATUS
};

int gm_raise(gm_status status, ...)
{
    va_list given;
    va_start(given, status);
    PyErr_FormatV(*table[status].exception, table[status].text, given);
    va_end(given);
    return -1;
}
