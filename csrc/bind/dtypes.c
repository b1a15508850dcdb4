#include "dtypes.h"
#include <string.h>

/* ml_dtypes and others give NumPy a bfloat16 of their own, which only its name tells. */
static int is_bfloat16(PyArray_Descr *descr)
{
    if (PyDataType_ELSIZE(descr) != 2 || !PyTypeNum_ISUSERDEF(descr->type_num))
        return 0;
    PyObject *name = PyType_GetName(descr->typeobj);
    int yes = name && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return yes;
}

int gm_dtype_of_numpy(PyArray_Descr *descr)
{
    if (is_bfloat16(descr))
        return GM_bfloat16;
    for (int i = 0; i < GM_DTYPE_COUNT; i++) {
        const gm_dtype_info *info = gm_dtype_get((gm_dtype)i);
        if (i != GM_bfloat16 && info->kind == descr->kind && info->bits == 8 * PyDataType_ELSIZE(descr))
            return i;
    }
    return -1;
}

int gm_dtype_of(const gm_operand *operand)
{
    if (operand->descr)
        return gm_dtype_of_numpy(operand->descr);
    gm_dtype dtype = gm_dlpack_to_dtype(operand->tensor.dtype);
    return dtype == GM_DTYPE_COUNT ? -1 : (int)dtype;
}

PyArray_Descr *gm_dtype_as_numpy(gm_dtype dtype)
{
    PyArray_Descr *descr = NULL;
    PyObject *name = PyUnicode_FromString(gm_dtype_get(dtype)->name);
    if (name)
        PyArray_DescrConverter(name, &descr);
    Py_XDECREF(name);
    return descr;
}

PyArray_Descr *gm_dtype_native(PyArray_Descr *descr)
{
    if (PyArray_ISNBO(descr->byteorder))
        return descr;
    PyArray_Descr *native = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    Py_DECREF((PyObject *)descr);
    return native;
}

int gm_dtype_by_name(PyObject *object)
{
    int found = -1;
    PyObject *text = PyType_Check(object) ? PyType_GetName((PyTypeObject *)object) : PyObject_Str(object);
    const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (name && strrchr(name, '.'))
        name = strrchr(name, '.') + 1;
    for (int i = 0; name && i < GM_DTYPE_COUNT; i++)
        if (strcmp(gm_dtype_get((gm_dtype)i)->name, name) == 0)
            found = i;
    Py_XDECREF(text);
    PyErr_Clear();
    return found;
}

PyObject *gm_dtype_names(void)
{
    PyObject *names = PyUnicode_FromString("");
    for (int i = 0; names && i < GM_DTYPE_COUNT; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%s", names, i ? ", " : "", gm_dtype_get((gm_dtype)i)->name);
        Py_DECREF(names);
        names = longer;
    }
    return names;
}
