/* Functions and kernels: their durations, and the launch shapes that they accept. */
#include "functions.h"

#include <string.h>

enum { THREADS_PER_BLOCK = 1024, SHARED_STATIC = 48 << 10, SHARED_MOST = 227 << 10 };

CUresult function_of(CUfunction handle, struct cuda_function **found) {
    TRY(driver_ready());
    if (!handle || handle->magic != FUNCTION_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    *found = handle;
    return CUDA_SUCCESS;
}

/* Only the local memory per thread is known, of all attributes. */
static CUresult attribute(int *value, int which, const struct cuda_function *function) {
    enum { LOCAL_BYTES = 3, ATTRIBUTES = 16 };
    if (!value || which < 0 || which >= ATTRIBUTES) return CUDA_ERROR_INVALID_VALUE;
    *value = which == LOCAL_BYTES ? (int)function->locals : which == 0 ? THREADS_PER_BLOCK : 0;
    return CUDA_SUCCESS;
}

CALL(cuFuncGetAttribute, int *value, int which, CUfunction handle) {
    struct cuda_function *function;
    TRY(function_of(handle, &function));
    return attribute(value, which, function);
}

CALL(cuKernelGetAttribute, int *value, int which, CUkernel handle, CUdevice ordinal) {
    struct cuda_function *function;
    struct device *device;
    TRY(device_of(ordinal, &device));
    TRY(function_of((CUfunction)handle, &function));
    return attribute(value, which, function);
}

/* The first parameter in the buffer form: pairs of key and value, terminated by 0; key 1 is the buffer. */
static const void *buffer_of(void *const *extra) {
    for (; extra && *extra; extra += 2)
        if ((uintptr_t)*extra == 1) return extra[1];
    return NULL;
}

CUresult function_duration(const struct cuda_function *function, void *const *params, void *const *extra,
                           u64 *duration_ns) {
    *duration_ns = function->duration_ns;
    if (!function->from_argument) return CUDA_SUCCESS;
    const void *first = params ? params[0] : buffer_of(extra);
    if (!first) return CUDA_ERROR_INVALID_VALUE;
    memcpy(duration_ns, first, sizeof *duration_ns);
    return CUDA_SUCCESS;
}

CUresult shape_check(const struct cuda_function *function, const struct shape *shape) {
    const unsigned *grid = shape->grid, *block = shape->block;
    for (int i = 0; i < 3; i++)
        if (!grid[i] || !block[i]) return CUDA_ERROR_INVALID_VALUE;
    if (grid[0] > INT32_MAX || grid[1] > UINT16_MAX || grid[2] > UINT16_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (block[0] > THREADS_PER_BLOCK || block[1] > THREADS_PER_BLOCK || block[2] > 64) return CUDA_ERROR_INVALID_VALUE;
    u64 threads = (u64)block[0] * block[1] * block[2];
    const bool fits = threads <= THREADS_PER_BLOCK && shape->shared_bytes <= (function ? SHARED_STATIC : SHARED_MOST);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
