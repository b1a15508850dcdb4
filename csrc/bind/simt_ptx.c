#include "simt_ptx.h"
#include "raise.h"
#include "../simt/ptx.h"

static PyObject *string_of(PyObject *latin)
{
    /* Names may hold any byte: nothing of a text in a strange encoding is refused here. */
    PyObject *text = latin ? PyUnicode_DecodeUTF8(PyBytes_AsString(latin), PyBytes_Size(latin), "replace") : NULL;
    Py_XDECREF(latin);
    return text;
}

static PyObject *name_of(const char *text)
{
    return string_of(PyBytes_FromString(text));
}

static PyObject *printed(const gm_ptx *m, const gm_ptx_function *f, const gm_ptx_inst *inst)
{
    size_t size = gm_ptx_print_inst(m, f, inst, NULL, 0);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes)
        gm_ptx_print_inst(m, f, inst, PyBytes_AsString(bytes), size + 1);
    return string_of(bytes);
}

/* (file, line, column, the same of the call that it was inlined into, or None) */
static PyObject *loc_of(const gm_ptx *m, uint32_t index)
{
    if (!index)
        Py_RETURN_NONE;
    const gm_ptx_loc *loc = &m->locs[index];
    return Py_BuildValue("(NIIN)", name_of(m->files[loc->file]), loc->line, loc->column, loc_of(m, loc->inlined));
}

static PyObject *variable_of(const gm_ptx_variable *v)
{
    return Py_BuildValue("{s:N,s:s,s:s,s:i,s:I,s:K,s:K,s:i,s:i,s:y#,s:I}", "name", name_of(v->name), "space",
                         gm_space_text((gm_space)v->space), "type", gm_ptx_types[v->type].text, "linkage", v->linkage,
                         "align", v->align, "size", (unsigned long long)v->size, "offset",
                         (unsigned long long)v->offset, "unsized", v->unsized, "function", (int)v->function, "data",
                         (const char *)v->data, (Py_ssize_t)v->ndata, "fixups", v->nfixups);
}

typedef PyObject *item_of(const gm_ptx *m, const gm_ptx_function *f, uint32_t index);

static PyObject *list_of(const gm_ptx *m, const gm_ptx_function *f, uint32_t n, item_of *item)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *one = item(m, f, i);
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, one);
    }
    return list;
}

static PyObject *inst_at(const gm_ptx *m, const gm_ptx_function *f, uint32_t i)
{
    const gm_ptx_inst *inst = &f->insts[i];
    return Py_BuildValue("(IINN)", inst->line, inst->column, printed(m, f, inst), loc_of(m, inst->loc));
}

static PyObject *parameter_at(const gm_ptx *m, const gm_ptx_function *f, uint32_t i)
{
    return variable_of(&m->variables[f->first_parameter + i]);
}

static PyObject *variable_at(const gm_ptx *m, const gm_ptx_function *f, uint32_t i)
{
    (void)f;
    return variable_of(&m->variables[i]);
}

static PyObject *reg_at(const gm_ptx *m, const gm_ptx_function *f, uint32_t i)
{
    const gm_ptx_reg *reg = &f->regs[i];
    (void)m;
    return Py_BuildValue("(Nis)", name_of(reg->name), (int)reg->number, gm_ptx_types[reg->type].text);
}

static PyObject *target_at(const gm_ptx *m, const gm_ptx_function *f, uint32_t i)
{
    const gm_ptx_table *t = &f->tables[i];
    PyObject *targets = PyList_New(0);
    (void)m;
    for (uint32_t k = 0; targets && k < t->n; k++) {
        PyObject *one = PyLong_FromUnsignedLong(t->targets[k]);
        if (!one || PyList_Append(targets, one) < 0)
            Py_CLEAR(targets);
        Py_XDECREF(one);
    }
    return targets ? Py_BuildValue("(NiN)", name_of(t->name), t->kind, targets) : NULL;
}

static PyObject *function_at(const gm_ptx *m, const gm_ptx_function *none, uint32_t i)
{
    const gm_ptx_function *f = &m->functions[i];
    (void)none;
    return Py_BuildValue(
        "{s:N,s:i,s:i,s:i,s:I,s:I,s:K,s:(III),s:(III),s:I,s:N,s:N,s:N,s:N}", "name", name_of(f->name), "entry",
        f->is_entry, "body", f->has_body, "linkage", f->linkage, "line", f->line, "results", f->nresults,
        "parameter_bytes", (unsigned long long)f->parameter_bytes, "reqntid", f->reqntid[0], f->reqntid[1],
        f->reqntid[2], "maxntid", f->maxntid[0], f->maxntid[1], f->maxntid[2], "minnctapersm", f->minnctapersm,
        "parameters", list_of(m, f, f->nparameters, parameter_at), "registers", list_of(m, f, f->nregs, reg_at),
        "tables", list_of(m, f, f->ntables, target_at), "instructions", list_of(m, f, f->ninsts, inst_at));
}

PyObject *gm_py_ptx(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    char *text;
    const char *name;
    Py_ssize_t size;
    gm_ptx *m;
    gm_failure failure;
    gm_status status;
    (void)module;

    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "_ptx(text, name) takes bytes and a string");
        return NULL;
    }
    if (PyBytes_AsStringAndSize(args[0], &text, &size) < 0 || !(name = PyUnicode_AsUTF8AndSize(args[1], NULL)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = gm_ptx_parse(text, (size_t)size, name, &m, &failure);
    Py_END_ALLOW_THREADS if (status)
    {
        gm_raise(status, failure.text);
        return NULL;
    }
    PyObject *result = Py_BuildValue("{s:I,s:I,s:N,s:N}", "version", m->version, "target", m->target, "functions",
                                     list_of(m, NULL, m->nfunctions, function_at), "variables",
                                     list_of(m, NULL, m->nvariables, variable_at));
    gm_ptx_free(m);
    return result;
}
