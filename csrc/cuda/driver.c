#include "driver.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

/* Code made by CUDA 13.0 needs a driver that knows it. */
enum { NEEDED_VERSION = 13000 };
#define NEEDED_DRIVER "580"

static struct {
    pthread_once_t once;
    gm_driver driver;
    gm_failure failure; /* status GM_OK when the driver is there */
} opened = {.once = PTHREAD_ONCE_INIT};

static void *refuse(gm_status status)
{
    opened.failure.status = status;
    return NULL;
}

#define SAY(...) snprintf(opened.failure.text, sizeof opened.failure.text, __VA_ARGS__)

static void *find_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    SAY("%s; install NVIDIA's driver " NEEDED_DRIVER " or newer", dlerror());
    return refuse(GM_NO_DRIVER);
}

/* Starts the driver by the two functions that every version has under these names. */
static void *start(void *library)
{
    /* POSIX lets a data pointer hold a function's address; ISO C has no cast for it. */
    CUresult (*init)(unsigned), (*version)(int *);
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&version = dlsym(library, "cuDriverGetVersion");
    if (!init || !version || version(&opened.driver.version) != CUDA_SUCCESS) {
        SAY("libcuda.so.1 is not NVIDIA's driver: it has no cuInit; a stub library comes before the real one?");
        return refuse(GM_NO_DRIVER);
    }
    if (opened.driver.version < NEEDED_VERSION) {
        SAY("it serves CUDA %d.%d and this build needs %d.%d: update to driver " NEEDED_DRIVER " or newer",
            opened.driver.version / 1000, opened.driver.version % 1000 / 10, NEEDED_VERSION / 1000,
            NEEDED_VERSION % 1000 / 10);
        return refuse(GM_OLD_DRIVER);
    }
    CUresult result = init(0);
    switch (result) {
    case CUDA_SUCCESS:
        return library;
    case CUDA_ERROR_NO_DEVICE:
        SAY("the driver finds none (CUDA_VISIBLE_DEVICES may hide it)");
        break;
    case CUDA_ERROR_STUB_LIBRARY:
        SAY("libcuda.so.1 is the toolkit's stub, not the driver: take its folder out of LD_LIBRARY_PATH");
        break;
    default:
        SAY("cuInit of the CUDA driver failed with error %d", (int)result);
    }
    return refuse(GM_NO_DEVICE);
}

static void open_once(void)
{
    void *library = find_library();
    if (!library || !start(library))
        return;
    __typeof__(cuGetProcAddress) *get;
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    const struct {
        const char *name;
        void *slot;
        int version;
    } functions[] = {
#define GM_DRIVER(function, version) {#function, &opened.driver.function, version},
#include "driver.def"
#undef GM_DRIVER
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        if (!get ||
            get(functions[i].name, functions[i].slot, functions[i].version, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                &found) != CUDA_SUCCESS ||
            found != CU_GET_PROC_ADDRESS_SUCCESS) {
            SAY("it has no %s of CUDA %d.%d", functions[i].name, functions[i].version / 1000,
                functions[i].version % 1000 / 10);
            refuse(GM_OLD_DRIVER);
            return;
        }
    }
}

const gm_driver *gm_driver_open(gm_failure *failure)
{
    pthread_once(&opened.once, open_once);
    *failure = opened.failure;
    return failure->status == GM_OK ? &opened.driver : NULL;
}

gm_status gm_driver_check(const gm_driver *driver, CUresult result, const char *call, gm_failure *failure)
{
    const char *name = NULL, *text = NULL;

    if (result == CUDA_SUCCESS)
        return GM_OK;
    driver->cuGetErrorName(result, &name);
    driver->cuGetErrorString(result, &text);
    snprintf(failure->text, sizeof failure->text, "%s: %s (%s, error %d)", call, text ? text : "unknown",
             name ? name : "no name", (int)result);
    return failure->status = result == CUDA_ERROR_OUT_OF_MEMORY ? GM_NO_DEVICE_MEMORY : GM_CUDA_ERROR;
}
