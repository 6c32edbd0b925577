/* What programs set in contexts and read back. Flags and limits are kept; caches and banks have no effect on time here.
 */
#include "streams.h"

CALL(cuCtxGetApiVersion, CUcontext handle, unsigned *version) {
    struct cuda_context *context;
    TRY(context_of(handle, &context));
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = context->version;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetFlags, unsigned *flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

/* As the driver begins, by number: stack, printf, malloc heap, sync depth, pending launches, L2 fetch, L2 persisting.
 */
enum { STACK };
static const size_t limits[CONTEXT_LIMITS] = {LOCALS_AT_FIRST, 1 << 20, 8 << 20, 2, 2048, 64, 0};

static CUresult limit_of(int limit, struct cuda_context **context) {
    TRY(context_current(context));
    return limit >= 0 && limit < CONTEXT_LIMITS ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CALL(cuCtxGetLimit, size_t *value, int limit) {
    struct cuda_context *context;
    TRY(limit_of(limit, &context));
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *value = context->limits[limit] ? context->limits[limit] : limits[limit];
    return CUDA_SUCCESS;
}

CALL(cuCtxSetLimit, int limit, size_t value) {
    struct cuda_context *context;
    CUresult result = limit_of(limit, &context);
    if (!result && limit == STACK) result = locals_grow(context, value);
    if (!result) context->limits[limit] = value;
    return result;
}
