/* Green contexts: partitions of a card in name only, as time is not divided by multiprocessors here. Each retains the
 * primary context. */
#include "streams.h"

#include <stdlib.h>

CUresult cuDevicePrimaryCtxRetain(CUcontext *found, CUdevice ordinal);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal);

enum { GREEN_MAGIC = 0x6772656e };

struct cuda_green {
    u32 magic;
    struct cuda_context *context;
};

static CUresult begin(struct cuda_green *green, struct device *device) {
    pthread_mutex_lock(&contexts_lock);
    green->context = context_new(device, true);
    CUresult result = green->context ? context_begin(green->context, 0) : CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&contexts_lock);
    if (!result) green->magic = GREEN_MAGIC;
    return result;
}

CALL(cuGreenCtxCreate, CUgreenCtx *made, const void *resources, CUdevice ordinal, unsigned flags) {
    struct device *device;
    CUcontext primary;
    TRY(device_of(ordinal, &device));
    if (!made || !resources || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    struct cuda_green *green = calloc(1, sizeof *green);
    if (!green) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = cuDevicePrimaryCtxRetain(&primary, ordinal);
    if (!result && (result = begin(green, device))) cuDevicePrimaryCtxRelease_v2(ordinal);
    if (!result) *made = green;
    return result;
}

static CUresult check(const struct cuda_green *green) {
    CUresult ready = driver_ready();
    return ready || (green && green->magic == GREEN_MAGIC) ? ready : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGreenCtxDestroy, CUgreenCtx green) {
    TRY(check(green));
    green->magic = 0;
    pthread_mutex_lock(&contexts_lock);
    context_end(green->context);
    pthread_mutex_unlock(&contexts_lock);
    return cuDevicePrimaryCtxRelease_v2(green->context->device->ordinal);
}

CALL(cuCtxFromGreenCtx, CUcontext *found, CUgreenCtx green) {
    TRY(check(green));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = green->context;
    return CUDA_SUCCESS;
}

CALL(cuGreenCtxStreamCreate, CUstream *made, CUgreenCtx green, unsigned flags, int priority) {
    TRY(check(green));
    if (!made || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    return stream_new(green->context, flags, priority, made);
}
