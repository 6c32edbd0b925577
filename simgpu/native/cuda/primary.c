/* Primary contexts: one for each device, shared by every part of a process that retains it. */
#include "streams.h"

/* The device's primary context, which keeps its address when recreated; under contexts_lock. */
static struct cuda_context *primary_of(struct device *device) {
    if (!device->primary) device->primary = context_new(device, true);
    return device->primary;
}

CALL(cuDevicePrimaryCtxRetain, CUcontext *found, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    TRY(device_fault(device));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    HOLD(contexts_lock);
    struct cuda_context *primary = primary_of(device);
    if (!primary) return CUDA_ERROR_OUT_OF_MEMORY;
    if (primary->references)
        atomic_fetch_add(&primary->references, 1);
    else
        TRY(context_begin(primary, primary->flags));
    *found = primary;
    return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxRelease_v2, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    HOLD(contexts_lock);
    struct cuda_context *primary = device->primary;
    if (!primary || !primary->references) return CUDA_ERROR_INVALID_CONTEXT;
    if (primary->references > 1)
        atomic_fetch_sub(&primary->references, 1);
    else
        context_end(primary);
    return CUDA_SUCCESS;
}

/* Frees everything of the context; holders may continue with a new one under the same handle. */
CALL(cuDevicePrimaryCtxReset_v2, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    HOLD(contexts_lock);
    struct cuda_context *primary = device->primary;
    if (!primary || !primary->references) return CUDA_SUCCESS;
    u32 references = primary->references;
    context_end(primary);
    TRY(context_begin(primary, primary->flags));
    atomic_store(&primary->references, references);
    return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxGetState, CUdevice ordinal, unsigned *flags, int *active) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    HOLD(contexts_lock);
    *flags = device->primary ? device->primary->flags : 0;
    *active = device->primary && device->primary->references;
    return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxSetFlags_v2, CUdevice ordinal, unsigned flags) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
    HOLD(contexts_lock);
    struct cuda_context *primary = primary_of(device);
    if (primary) primary->flags = flags;
    return primary ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first versions of these functions; identical. */
CALL(cuDevicePrimaryCtxRelease, CUdevice ordinal) { return cuDevicePrimaryCtxRelease_v2(ordinal); }
CALL(cuDevicePrimaryCtxReset, CUdevice ordinal) { return cuDevicePrimaryCtxReset_v2(ordinal); }
CALL(cuDevicePrimaryCtxSetFlags, CUdevice ordinal, unsigned flags) {
    return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}
