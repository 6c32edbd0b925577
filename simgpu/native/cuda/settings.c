/* What programs set in contexts and read back. Flags and limits are kept; caches and banks have no effect on time here.
 */
#include "streams.h"

CALL(cuCtxGetApiVersion, CUcontext handle, unsigned *version) {
    struct context *context;
    CUresult result = context_of(handle, &context);
    if (result) return result;
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = context->version;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetId, CUcontext handle, unsigned long long *id) {
    struct context *context;
    CUresult result = context_of(handle, &context);
    if (result) return result;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetFlags, unsigned *flags) {
    struct context *context;
    CUresult result = context_current(&context);
    if (result) return result;
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CALL(cuCtxSetFlags, unsigned flags) {
    struct context *context;
    CUresult result = context_current(&context);
    if (result) return result;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

/* As the driver begins, by number: stack, printf, malloc heap, sync depth, pending launches, L2 fetch, L2 persisting.
 */
static const size_t limits[CONTEXT_LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

static CUresult limit_of(int limit, struct context **context) {
    CUresult result = context_current(context);
    if (result) return result;
    return limit >= 0 && limit < CONTEXT_LIMITS ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CALL(cuCtxGetLimit, size_t *value, int limit) {
    struct context *context;
    CUresult result = limit_of(limit, &context);
    if (result) return result;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *value = context->limits[limit] ? context->limits[limit] : limits[limit];
    return CUDA_SUCCESS;
}

CALL(cuCtxSetLimit, int limit, size_t value) {
    struct context *context;
    CUresult result = limit_of(limit, &context);
    if (!result) context->limits[limit] = value;
    return result;
}

static CUresult put(int *out, int value) {
    struct context *context;
    CUresult result = context_current(&context);
    if (result) return result;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = value;
    return CUDA_SUCCESS;
}

static CUresult accept(int value, int most) {
    struct context *context;
    CUresult result = context_current(&context);
    return result ? result : value < 0 || value > most ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CALL(cuCtxGetCacheConfig, int *split) { return put(split, 0); }
CALL(cuCtxSetCacheConfig, int split) { return accept(split, 3); }
CALL(cuCtxGetSharedMemConfig, int *bank) { return put(bank, 1); }
CALL(cuCtxSetSharedMemConfig, int bank) { return accept(bank, 2); }
CALL(cuCtxResetPersistingL2Cache, void) { return accept(0, 0); }

/* A profiler would be told to begin and end; there is none. */
CALL(cuProfilerStart, void) { return accept(0, 0); }
CALL(cuProfilerStop, void) { return accept(0, 0); }
