#include "simt_findings.h"
#include "../simt/space.h"

static const char *const spaces[GM_SPACE_COUNT] = {
    [GM_SPACE_GENERIC] = "generic",
    [GM_SPACE_GLOBAL] = "global",
    [GM_SPACE_SHARED] = "shared",
    [GM_SPACE_LOCAL] = "local",
    [GM_SPACE_PARAM] = "param",
    [GM_SPACE_CONST] = "const",
    [GM_SPACE_SHARED_CLUSTER] = "shared::cluster",
};

static PyObject *place_as_dict(const gm_place *place)
{
    if (place->line == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("{s:z,s:I,s:z,s:I,s:z}", "opcode", place->opcode, "line", place->line, "file", place->file,
                         "file_line", place->file_line, "calls", place->calls);
}

static PyObject *triple(const uint32_t at[3])
{
    if (at[0] == UINT32_MAX)
        Py_RETURN_NONE;
    return Py_BuildValue("(III)", at[0], at[1], at[2]);
}

static PyObject *example_as_dict(const gm_finding_example *e)
{
    PyObject *buffer = e->buffer < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(e->buffer);
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:K,s:N,s:L}", "block", triple(e->block), "thread", triple(e->thread),
                         "other_thread", triple(e->other_thread), "other_block", triple(e->other_block), "address",
                         (unsigned long long)e->address, "buffer", buffer, "offset", (long long)e->offset);
}

static PyObject *row_as_dict(const gm_finding *row)
{
    PyObject *examples = PyList_New(0);
    for (uint32_t i = 0; examples && i < row->example_count; i++) {
        PyObject *example = example_as_dict(&row->example[i]);
        if (!example || PyList_Append(examples, example) < 0)
            Py_CLEAR(examples);
        Py_XDECREF(example);
    }
    if (!examples)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:O,s:i,s:K,s:K,s:N,s:N,s:N}", "kind", gm_finding_identifier(row->kind), "text",
                         gm_finding_text(row->kind), "space", spaces[row->space], "writes",
                         row->writes ? Py_True : Py_False, "bytes", row->bytes, "lanes", (unsigned long long)row->lanes,
                         "times", (unsigned long long)row->times, "place", place_as_dict(&row->place), "other",
                         place_as_dict(&row->other), "examples", examples);
}

PyObject *gm_py_findings(const gm_findings *findings)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < findings->count; i++) {
        PyObject *row = row_as_dict(&findings->row[i]);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}
