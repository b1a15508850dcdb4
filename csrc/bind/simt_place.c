#include "simt_count.h"
#include "../simt/count.h"
#include <string.h>

/* The rules of shared memory, by the names that _count knows them by. */
static gm_shared_count place(const char *rule, const uint32_t at[GM_LANES], uint32_t active, uint32_t bytes,
                             uint8_t served[GM_LANES])
{
    static const char *const accesses[] = {
        [GM_ACCESS_LOAD] = "shared load", [GM_ACCESS_STORE] = "shared store", [GM_ACCESS_ATOM] = "shared atom",
        [GM_ACCESS_CAS] = "shared cas",   [GM_ACCESS_INC] = "shared inc",
    };
    static const char matrix[] = "matrix x";
    gm_shared_count none = {0};

    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
        if (strcmp(rule, accesses[i]) == 0)
            return active ? gm_place_shared((gm_access)i, at, active, bytes, served) : none;
    if (strcmp(rule, "copy shared") == 0)
        return gm_place_copy_shared(at, active, bytes, served);
    if (strncmp(rule, matrix, sizeof matrix - 1) == 0 && strchr("1234", rule[sizeof matrix - 1]) &&
        strlen(rule) == sizeof matrix)
        return gm_place_matrix(at, (uint32_t)(rule[sizeof matrix - 1] - '0'), served);
    PyErr_Format(PyExc_ValueError, "no wavefronts of shared memory for %s", rule);
    return none;
}

PyObject *gm_py_wavefronts(PyObject *module, PyObject *args)
{
    const char *rule, *bytes;
    Py_ssize_t size;
    unsigned int active, width;
    uint32_t at[GM_LANES];
    uint8_t served[GM_LANES] = {0};
    (void)module;

    if (!PyArg_ParseTuple(args, "sy#II", &rule, &bytes, &size, &active, &width))
        return NULL;
    if (size != (Py_ssize_t)sizeof at || !width || width > 16 || width & (width - 1)) {
        PyErr_SetString(PyExc_ValueError, "32 addresses of 4 bytes; 1 to 16 bytes a lane, a power of 2");
        return NULL;
    }
    memcpy(at, bytes, sizeof at);
    gm_shared_count count = place(rule, at, active, width, served);
    if (PyErr_Occurred())
        return NULL;
    return Py_BuildValue("(Iy#)", (unsigned int)count.wavefronts, (const char *)served, (Py_ssize_t)sizeof served);
}
