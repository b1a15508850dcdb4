/* A kernel of the lens as Python data. gpumem/kernel.py reads it. */
#include "simt.h"

static const char *const spaces[GM_SPACE_COUNT] = {
    [GM_SPACE_GENERIC] = "generic",       [GM_SPACE_GLOBAL] = "global", [GM_SPACE_SHARED] = "shared",
    [GM_SPACE_LOCAL] = "local",           [GM_SPACE_PARAM] = "param",   [GM_SPACE_CONST] = "const",
    [GM_SPACE_SHARED_CLUSTER] = "shared",
};
static const char *const kinds[GM_SITE_KINDS] = {
    [GM_SITE_LOAD] = "load", [GM_SITE_STORE] = "store", [GM_SITE_ATOM] = "atom",     [GM_SITE_RED] = "red",
    [GM_SITE_COPY] = "copy", [GM_SITE_BULK] = "bulk",   [GM_SITE_LDMATRIX] = "ldsm", [GM_SITE_STMATRIX] = "stsm",
};

/* Appends a new reference, which may be NULL after an error, and lets go of it. */
static int append(PyObject *list, PyObject *item)
{
    int rc = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return rc;
}

static PyObject *parameters_of(const gm_lens_kernel *kernel)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < kernel->parameter_count; i++) {
        const gm_lens_parameter *p = &kernel->parameters[i];
        if (append(list, Py_BuildValue("(sIIIiCOO)", p->name, (unsigned)p->offset, (unsigned)p->size,
                                       (unsigned)p->align, (int)p->bits, (int)p->kind, p->is_array ? Py_True : Py_False,
                                       p->is_pointer ? Py_True : Py_False)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *sites_of(const gm_lens_kernel *kernel)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < kernel->site_count; i++) {
        const gm_lens_site *site = &kernel->sites[i];
        if (append(list, Py_BuildValue("(szIIssIz)", site->opcode, site->file, (unsigned)site->line,
                                       (unsigned)site->file_line, kinds[site->kind], spaces[site->space],
                                       (unsigned)site->lane_bytes, site->calls)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The opcodes of each stretch, a list of tuples. */
static PyObject *stretches_of(const gm_lens_kernel *kernel)
{
    PyObject *list = PyList_New(0);

    for (size_t s = 0; list && s < kernel->stretch_count; s++) {
        const gm_lens_stretch *stretch = &kernel->stretches[s];
        PyObject *row = PyTuple_New((Py_ssize_t)stretch->count);
        for (uint32_t i = 0; row && i < stretch->count; i++) {
            PyObject *opcode = PyUnicode_FromString(stretch->opcodes[i]);
            if (!opcode || PyTuple_SetItem(row, (Py_ssize_t)i, opcode) < 0)
                Py_CLEAR(row);
        }
        if (append(list, row) < 0)
            Py_CLEAR(list);
    }
    return list;
}

#define DIM(d) (unsigned)(d)[0], (unsigned)(d)[1], (unsigned)(d)[2]

PyObject *gm_simt_describe(const gm_lens_kernel *kernel)
{
    PyObject *parameters = parameters_of(kernel), *sites = parameters ? sites_of(kernel) : NULL;
    PyObject *stretches = sites ? stretches_of(kernel) : NULL;

    if (!stretches) {
        Py_XDECREF(parameters);
        Py_XDECREF(sites);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:N,s:N,s:N,s:I,s:I,s:I,s:(III),s:(III),s:(III),s:z,s:I,s:z,s:I}", "name", kernel->name,
                         "parameters", parameters, "sites", sites, "stretches", stretches, "parameter_bytes",
                         (unsigned)kernel->parameter_bytes, "static_shared", (unsigned)kernel->static_shared,
                         "local_bytes", (unsigned)kernel->local_bytes, "reqntid", DIM(kernel->reqntid), "maxntid",
                         DIM(kernel->maxntid), "cluster", DIM(kernel->cluster), "communicates", kernel->communicates,
                         "communicates_line", (unsigned)kernel->communicates_line, "listens", kernel->listens,
                         "listens_line", (unsigned)kernel->listens_line);
}
