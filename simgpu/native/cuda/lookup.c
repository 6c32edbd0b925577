/* cuGetProcAddress: functions by name, CUDA version, and default stream. */
#include "driver.h"

#include <string.h>

struct route {
    const char *name;
    u32 version;
    bool per_thread;
    CUresult (*symbol)(void);
};

/* Declared without parameters, as only addresses are needed here; each has a separate alias in this file. */
#define ROUTE(name, version, per_thread, symbol)                                                                       \
    CUresult route_to_##name##_##version##_##per_thread(void) __asm__(#symbol);
#include "driver/cuda.def"

static const struct route routes[] = {
#define ROUTE(name, version, per_thread, symbol)                                                                       \
    {#name, version, per_thread, route_to_##name##_##version##_##per_thread},
#include "driver/cuda.def"
};

enum { ROUTES = sizeof routes / sizeof *routes };
enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2 };
enum { FOUND, NOT_FOUND, TOO_OLD };

/* The first route of a name: routes are sorted. */
static const struct route *first_of(const char *name) {
    size_t low = 0, high = ROUTES;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(routes[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ROUTES && !strcmp(routes[low].name, name) ? &routes[low] : NULL;
}

/* The newest form known in `version`, per-thread before legacy if requested. A name of a later CUDA than the driver's
 * does not exist. */
static int find(const char *name, u32 version, bool per_thread, void **address) {
    const struct route *best = NULL, *route = first_of(name);
    u32 driver = driver_version();
    bool exists = false;
    for (; route && route < routes + ROUTES && !strcmp(route->name, name); route++) {
        if (route->version > driver) continue;
        exists = true;
        if (route->version > version || (route->per_thread && !per_thread)) continue;
        if (!best || (route->per_thread && !best->per_thread)) best = route;
    }
    *address = best ? (void *)best->symbol : NULL;
    return best ? FOUND : exists ? TOO_OLD : NOT_FOUND;
}

static CUresult get(const char *name, void **address, int version, u64 flags, int *status) {
    if (status) *status = NOT_FOUND;
    if (!name || !address || flags & ~(u64)(FLAG_LEGACY | FLAG_PER_THREAD)) return CUDA_ERROR_INVALID_VALUE;
    *address = NULL;
    if (version < 0 || (u32)version > driver_version()) return CUDA_ERROR_INVALID_VALUE;
    int found = find(name, (u32)version, flags == FLAG_PER_THREAD, address);
    if (status) *status = found;
    return CUDA_SUCCESS;
}

/* The first version has no status output, so its result reports a missing function. */
CALL(cuGetProcAddress, const char *name, void **address, int version, u64 flags) {
    CUresult result = get(name, address, version, flags, NULL);
    return result || *address ? result : CUDA_ERROR_NOT_FOUND;
}
CALL(cuGetProcAddress_v2, const char *name, void **address, int version, u64 flags, int *status) {
    return get(name, address, version, flags, status);
}

/* NVIDIA's own libraries access the driver through private tables. */
CALL(cuGetExportTable, const void **table, const CUuuid *id) {
    if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
