#include "dlpack.h"

int gm_dlpack_speaks(PyObject *object)
{
    (void)object;
    return 0;
}
