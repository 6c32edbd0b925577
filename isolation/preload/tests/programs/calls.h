/* The driver as a test program sees it: found by name as frameworks find it, one pointer for each function that is
 * used.
 *
 * Nothing here knows whether a library meters the program or which driver answers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;
typedef void *handle; /* any of the driver's opaque pointers */

#define MIB (1ull << 20)

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201 };

struct place {
    int type, id; /* 1: a device */
};

struct memory_properties {
    int type, handle_types;
    struct place location;
    void *windows;
    unsigned char flags[8];
};

struct memory_access {
    struct place location;
    int flags;
};

struct pool_properties {
    int type, handle_types;
    struct place location;
    void *windows;
    size_t most;
    unsigned char reserved[56];
};

struct array_description {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

struct ipc_handle {
    unsigned char bytes[64];
};

enum { POOL_RESERVED = 5 };

/* X(name that we call, symbol, parameters) */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(cuInit, cuInit, (unsigned flags))                                                                                \
    X(cuDeviceGet, cuDeviceGet, (int *device, int ordinal))                                                            \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *bytes, int device))                                              \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (handle * context, int device))                              \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (int device))                                               \
    X(cuCtxCreate, cuCtxCreate_v2, (handle * context, unsigned flags, int device))                                     \
    X(cuCtxDestroy, cuCtxDestroy_v2, (handle context))                                                                 \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (handle context))                                                              \
    X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (handle * context))                                                         \
    X(cuCtxSynchronize, cuCtxSynchronize, (void))                                                                      \
    X(cuStreamCreate, cuStreamCreate, (handle * stream, unsigned flags))                                               \
    X(cuStreamDestroy, cuStreamDestroy_v2, (handle stream))                                                            \
    X(cuModuleLoadData, cuModuleLoadData, (handle * module, const void *image))                                        \
    X(cuModuleGetFunction, cuModuleGetFunction, (handle * function, handle module, const char *name))                  \
    X(cuLaunchKernel, cuLaunchKernel,                                                                                  \
      (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
       handle stream, void **parameters, void **extra))                                                                \
    X(cuStreamSynchronize, cuStreamSynchronize, (handle stream))                                                       \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (handle stream, int mode))                                        \
    X(cuStreamEndCapture, cuStreamEndCapture, (handle stream, handle * graph))                                         \
    X(cuGraphInstantiate, cuGraphInstantiateWithFlags, (handle * executable, handle graph, unsigned long long flags))  \
    X(cuGraphLaunch, cuGraphLaunch, (handle executable, handle stream))                                                \
    X(cuGraphExecDestroy, cuGraphExecDestroy, (handle executable))                                                     \
    X(cuGraphDestroy, cuGraphDestroy, (handle graph))                                                                  \
    X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, (int device))                                                        \
    X(cuMemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                    \
    X(cuMemAlloc, cuMemAlloc_v2, (u64 * address, size_t bytes))                                                        \
    X(cuMemAllocPitch, cuMemAllocPitch_v2,                                                                             \
      (u64 * address, size_t *pitch, size_t width, size_t height, unsigned element))                                   \
    X(cuMemAllocManaged, cuMemAllocManaged, (u64 * address, size_t bytes, unsigned flags))                             \
    X(cuMemFree, cuMemFree_v2, (u64 address))                                                                          \
    X(cuMemAllocAsync, cuMemAllocAsync, (u64 * address, size_t bytes, handle stream))                                  \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, (u64 * address, size_t bytes, handle pool, handle stream))     \
    X(cuMemFreeAsync, cuMemFreeAsync, (u64 address, handle stream))                                                    \
    X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (handle * pool, int device))                               \
    X(cuMemPoolCreate, cuMemPoolCreate, (handle * pool, const struct pool_properties *properties))                     \
    X(cuMemPoolDestroy, cuMemPoolDestroy, (handle pool))                                                               \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, (handle pool, size_t keep))                                                    \
    X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, (handle pool, int which, void *value))                             \
    X(cuArray3DCreate, cuArray3DCreate_v2, (handle * array, const struct array_description *description))              \
    X(cuArrayDestroy, cuArrayDestroy, (handle array))                                                                  \
    X(cuMipmappedArrayCreate, cuMipmappedArrayCreate,                                                                  \
      (handle * mipmaps, const struct array_description *description, unsigned levels))                                \
    X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, (handle mipmaps))                                              \
    X(cuMemCreate, cuMemCreate,                                                                                        \
      (u64 * memory, size_t bytes, const struct memory_properties *properties, unsigned long long flags))              \
    X(cuMemRelease, cuMemRelease, (u64 memory))                                                                        \
    X(cuMemAddressReserve, cuMemAddressReserve,                                                                        \
      (u64 * address, size_t bytes, size_t alignment, u64 wish, unsigned long long flags))                             \
    X(cuMemAddressFree, cuMemAddressFree, (u64 address, size_t bytes))                                                 \
    X(cuMemMap, cuMemMap, (u64 address, size_t bytes, size_t offset, u64 memory, unsigned long long flags))            \
    X(cuMemUnmap, cuMemUnmap, (u64 address, size_t bytes))                                                             \
    X(cuMemSetAccess, cuMemSetAccess, (u64 address, size_t bytes, const struct memory_access *access, size_t count))   \
    X(cuIpcGetMemHandle, cuIpcGetMemHandle, (struct ipc_handle * ipc, u64 address))                                    \
    X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, (u64 * address, struct ipc_handle ipc, unsigned flags))               \
    X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, (u64 address))

#define DECLARE(name, symbol, parameters) extern int(*name) parameters;
DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE

/* Finds all of the above in libcuda.so.1. */
void calls_find(void);

/* Ends the program with a line on stderr, unless all is well. */
void require(int result, const char *what);
void stop_with(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
