/* A driver that does nothing, as fast as possible, to measure the library's own cost. Two cards, a context and streams
 * on each, and all launches are complete. */
#include <stdint.h>
#include <string.h>

#define NOTHING(name, ...)                                                                                             \
    int name(__VA_ARGS__);                                                                                             \
    int name(__VA_ARGS__)

enum { CARDS = 2, STREAMS = 256 };

/* Objects are their addresses. */
static char contexts[CARDS], event_, graph_;
static struct {
    void *context;
    char room[56];
} streams[STREAMS];
static unsigned next;

static __thread char *current, *before; /* one is pushed at a time */

NOTHING(cuInit, unsigned flags) { return (int)flags; }
NOTHING(cuDriverGetVersion, int *version) { return *version = 12340, 0; }
NOTHING(cuDeviceGet, int *device, int ordinal) { return *device = ordinal, 0; }
NOTHING(cuDeviceGetCount, int *count) { return *count = CARDS, 0; }

/* Its UUID is 0123456789abcdef, letter by letter; the other one's ends with g. */
NOTHING(cuDeviceGetUuid, char *uuid, int device) {
    memcpy(uuid, "0123456789abcdef", 16);
    return uuid[15] = (char)(uuid[15] + device), 0;
}

NOTHING(cuDevicePrimaryCtxRetain, void **context, int device) { return *context = &contexts[device], 0; }
NOTHING(cuDevicePrimaryCtxGetState, int device, unsigned *flags, int *active) {
    return (void)device, *flags = 0, *active = 1, 0;
}
NOTHING(cuCtxSetCurrent, void *context) { return current = context, 0; }
NOTHING(cuCtxGetCurrent, void **context) { return *context = current, 0; }
NOTHING(cuCtxGetDevice, int *device) { return *device = current ? (int)(current - contexts) : 0, 0; }
NOTHING(cuCtxPushCurrent_v2, void *context) { return before = current, current = context, 0; }
NOTHING(cuCtxPopCurrent_v2, void **context) { return *context = current, current = before, 0; }

NOTHING(cuMemGetInfo_v2, size_t *unused, size_t *total) { return *unused = *total = (size_t)1 << 34, 0; }
NOTHING(cuMemAlloc_v2, uint64_t *address, size_t bytes) { return (void)bytes, *address = (uint64_t)1 << 40, 0; }
NOTHING(cuMemFree_v2, uint64_t address) { return (void)address, 0; }

NOTHING(cuStreamCreate, void **stream, unsigned flags) {
    const unsigned number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % STREAMS;
    streams[number].context = current;
    return (void)flags, *stream = &streams[number], 0;
}
NOTHING(cuStreamGetCtx, void **stream, void **context) { return *context = *stream, 0; }
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
NOTHING(cuLaunchKernelEx, const void *config, void *function, void **parameters, void **extra) {
    return (void)config, (void)function, (void)parameters, (void)extra, 0;
}

NOTHING(cuGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags) {
    return (void)graph, (void)flags, *executable = &graph_, 0;
}
NOTHING(cuGraphLaunch, void *executable, void *stream) { return (void)executable, (void)stream, 0; }
