#include "simt_patterns.h"

static const char *const spaces[GM_SPACE_COUNT] = {
    [GM_SPACE_GLOBAL] = "global", [GM_SPACE_SHARED] = "shared", [GM_SPACE_LOCAL] = "local"};

static PyObject *row_of(const gm_lens_pattern *p)
{
    return Py_BuildValue("(IissIIIKKKKIy#y#)", (unsigned int)p->site, (int)p->distinct, spaces[p->space], p->rule,
                         (unsigned int)p->bytes, (unsigned int)p->active, (unsigned int)p->cost,
                         (unsigned long long)p->times, (unsigned long long)p->unit, (unsigned long long)p->order,
                         (unsigned long long)p->block, (unsigned int)p->warp, (const char *)p->address,
                         (Py_ssize_t)sizeof p->address, (const char *)p->target, (Py_ssize_t)sizeof p->target);
}

PyObject *gm_py_patterns(const gm_lens_pattern *patterns, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *row = row_of(&patterns[i]);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}
