/* A result of the lens as Python data. gpumem/trace.py reads it. */
#include "simt.h"
#include "simt_findings.h"
#include "simt_patterns.h"

static const char *const endings[GM_STATUS_COUNT] = {
    [GM_OK] = "", [GM_LENS_LIMIT] = "limit", [GM_LENS_DEADLOCK] = "deadlock"};

static PyObject *addresses_of(const gm_lens_launch *launch)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < launch->buffer_count; i++) {
        PyObject *address = PyLong_FromUnsignedLongLong(launch->buffers[i].address);
        if (!address || PyList_Append(list, address) < 0)
            Py_CLEAR(list);
        Py_XDECREF(address);
    }
    return list;
}

PyObject *gm_simt_result(const gm_lens_result *result, const char *text, const gm_lens_launch *launch)
{
    size_t bytes = result->site_count * sizeof(gm_lens_counts);
    const gm_findings none = {0};
    PyObject *counts = PyBytes_FromStringAndSize((const char *)result->counts, (Py_ssize_t)bytes);
    PyObject *ran =
        PyBytes_FromStringAndSize((const char *)result->ran, (Py_ssize_t)(result->stretch_count * sizeof(gm_lens_ran)));
    PyObject *findings = gm_py_findings(result->findings ? result->findings : &none), *addresses = addresses_of(launch);
    PyObject *patterns = gm_py_patterns(result->patterns, result->pattern_count);

    if (!counts || !ran || !findings || !addresses || !patterns) {
        Py_XDECREF(counts);
        Py_XDECREF(ran);
        Py_XDECREF(findings);
        Py_XDECREF(addresses);
        Py_XDECREF(patterns);
        return NULL;
    }
    return Py_BuildValue(
        "{s:s,s:s,s:K,s:K,s:K,s:K,s:N,s:N,s:N,s:K,s:N,s:N,s:y#}", "ended", endings[result->ended], "why",
        result->ended == GM_OK ? "" : text, "instructions", (unsigned long long)result->instructions,
        "thread_instructions", (unsigned long long)result->thread_instructions, "blocks",
        (unsigned long long)result->blocks, "blocks_total", (unsigned long long)result->blocks_total, "counts", counts,
        "ran", ran, "findings", findings, "left_out",
        (unsigned long long)(result->findings ? result->findings->left_out : 0), "addresses", addresses, "patterns",
        patterns, "met", (const char *)result->met, (Py_ssize_t)result->met_count);
}
