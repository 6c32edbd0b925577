/* A driver that does nothing, as fast as that can be done: for what the library itself costs. One card, one context,
 * and all that was launched is done. */
#include <stdint.h>
#include <string.h>

#define NOTHING(name, ...)                                                                                             \
    int name(__VA_ARGS__);                                                                                             \
    int name(__VA_ARGS__)

/* Objects are their addresses. */
static char context_, stream_, event_;

NOTHING(cuInit, unsigned flags) { return (int)flags; }
NOTHING(cuDriverGetVersion, int *version) { return *version = 12340, 0; }
NOTHING(cuDeviceGet, int *device, int ordinal) { return *device = ordinal, 0; }
NOTHING(cuDeviceGetCount, int *count) { return *count = 1, 0; }

/* Its UUID is 0123456789abcdef, letter by letter. */
NOTHING(cuDeviceGetUuid, void *uuid, int device) { return (void)device, memcpy(uuid, "0123456789abcdef", 16), 0; }
NOTHING(cuDevicePrimaryCtxRetain, void **context, int device) { return (void)device, *context = &context_, 0; }
NOTHING(cuDevicePrimaryCtxGetState, int device, unsigned *flags, int *active) {
    return (void)device, *flags = 0, *active = 1, 0;
}
NOTHING(cuCtxSetCurrent, void *context) { return (void)context, 0; }
NOTHING(cuCtxGetCurrent, void **context) { return *context = &context_, 0; }
NOTHING(cuCtxGetDevice, int *device) { return *device = 0, 0; }
NOTHING(cuCtxPushCurrent_v2, void *context) { return (void)context, 0; }
NOTHING(cuCtxPopCurrent_v2, void **context) { return *context = &context_, 0; }

NOTHING(cuMemGetInfo_v2, size_t *unused, size_t *total) { return *unused = *total = (size_t)1 << 34, 0; }
NOTHING(cuMemAlloc_v2, uint64_t *address, size_t bytes) { return (void)bytes, *address = (uint64_t)1 << 40, 0; }
NOTHING(cuMemFree_v2, uint64_t address) { return (void)address, 0; }

NOTHING(cuStreamCreate, void **stream, unsigned flags) { return (void)flags, *stream = &stream_, 0; }
NOTHING(cuStreamGetCtx, void *stream, void **context) { return (void)stream, *context = &context_, 0; }
NOTHING(cuEventCreate, void **event, unsigned flags) { return (void)flags, *event = &event_, 0; }
NOTHING(cuEventRecord, void *event, void *stream) { return (void)event, (void)stream, 0; }
NOTHING(cuEventQuery, void *event) { return (void)event, 0; }
NOTHING(cuEventElapsedTime, float *ms, void *from, void *to) { return (void)from, (void)to, *ms = 0, 0; }
NOTHING(cuEventDestroy_v2, void *event) { return (void)event, 0; }

NOTHING(cuLaunchKernel, void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void *stream, void **parameters, void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    return (void)stream, (void)parameters, (void)extra, 0;
}
