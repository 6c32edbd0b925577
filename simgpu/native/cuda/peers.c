/* Devices that reach each other's memory: those that an NVLink joins. */
#include "driver.h"

static bool linked(const struct device *one, const struct device *other) {
    const struct sim_model *model = &one->about->model;
    for (u32 i = 0; i < SIM_LINKS && i < model->nvlinks; i++)
        if (model->link_to[i] == (int32_t)other->card) return true;
    return false;
}

static CUresult pair_of(CUdevice a, CUdevice b, struct device **one, struct device **other) {
    CUresult result = device_of(a, one);
    return result ? result : device_of(b, other);
}

CALL(cuDeviceCanAccessPeer, int *can, CUdevice from, CUdevice to) {
    struct device *one, *other;
    CUresult result = pair_of(from, to, &one, &other);
    if (result) return result;
    if (!can) return CUDA_ERROR_INVALID_VALUE;
    *can = one != other && linked(one, other);
    return CUDA_SUCCESS;
}

enum { PERFORMANCE_RANK = 1, ACCESS = 2, ATOMICS = 3, ARRAYS = 4, PARTIAL_ATOMICS = 5 };

CALL(cuDeviceGetP2PAttribute, int *value, int attribute, CUdevice from, CUdevice to) {
    struct device *one, *other;
    CUresult result = pair_of(from, to, &one, &other);
    if (result) return result;
    if (!value || attribute < PERFORMANCE_RANK || attribute > PARTIAL_ATOMICS) return CUDA_ERROR_INVALID_VALUE;
    if (one == other) return CUDA_ERROR_INVALID_DEVICE;
    *value = linked(one, other) && attribute != PERFORMANCE_RANK && attribute != PARTIAL_ATOMICS;
    return CUDA_SUCCESS;
}

static CUresult change(CUcontext peer, bool open) {
    struct context *context, *other;
    CUresult result = context_current(&context);
    if (!result) result = peer ? context_of(peer, &other) : CUDA_ERROR_INVALID_CONTEXT;
    if (result) return result;
    if (context->device == other->device) return CUDA_ERROR_INVALID_DEVICE;
    if (!linked(context->device, other->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    u32 bit = 1u << other->device->ordinal;
    pthread_mutex_lock(&driver_lock);
    bool was = context->opened & bit;
    context->opened = open ? context->opened | bit : context->opened & ~bit;
    pthread_mutex_unlock(&driver_lock);
    if (was != open) return CUDA_SUCCESS;
    return open ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CALL(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags) {
    return flags ? CUDA_ERROR_INVALID_VALUE : change(peer, true);
}
CALL(cuCtxDisablePeerAccess, CUcontext peer) { return change(peer, false); }
