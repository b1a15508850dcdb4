/* Functions of an exchange table that fail with a Python exception, which functions made by ctypes cannot. */
#include <stddef.h>

extern void *PyExc_RuntimeError;
extern void PyErr_SetString(void *exception, const char *message);

typedef struct versioned {
    unsigned version[2];
    void *context;
    void (*deleter)(struct versioned *self);
} versioned;

const char *kind = "RuntimeError", *message = "no room in this library";

int failing_allocator(void *prototype, void **out, void *context,
                      void (*set_error)(void *context, const char *kind, const char *message))
{
    (void)prototype, (void)out;
    set_error(context, kind, message);
    return -1;
}

int failing_to_py_object(versioned *managed, void **out)
{
    (void)out;
    managed->deleter(managed);
    PyErr_SetString(PyExc_RuntimeError, "cannot wrap");
    return -1;
}
