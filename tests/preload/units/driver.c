/* A driver made of a few arrays: memory in blocks of 2 MiB, one pool, virtual memory by number. It counts its memory,
 * and fails now and then if configured. */
#include "units.h"

#include <pthread.h>
#include <stdlib.h>

enum { BLOCKS = 4096, PIECES = 1 << 14, SMALL = 64 << 10 };

__thread unsigned driver_depth __attribute__((tls_model("initial-exec")));
_Atomic uint64_t driver_fails_each;
_Atomic uint64_t driver_peak;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned pieces_in[BLOCKS]; /* small allocations in each block; or 1: part of a large one */
static uint64_t large_bytes[BLOCKS]; /* at the first block of a large one */
static unsigned char small_in[BLOCKS][32];
static uint64_t physical[PIECES];
static unsigned references[PIECES], mapped[PIECES];
static uint64_t pool_reserved, pool_used, used_bytes, calls;

#define LOCKED(...)                                                                                                    \
    pthread_mutex_lock(&lock);                                                                                         \
    __VA_ARGS__;                                                                                                       \
    pthread_mutex_unlock(&lock)

static void grew(uint64_t bytes) {
    used_bytes += bytes;
    if (used_bytes > atomic_load(&driver_peak)) atomic_store(&driver_peak, used_bytes);
}

static bool fails(void) {
    const uint64_t each = atomic_load(&driver_fails_each);
    return each && ++calls % each == 0;
}

uint64_t driver_holds(void) {
    LOCKED(const uint64_t bytes = used_bytes);
    return bytes;
}

/* ---- contexts and devices --------------------------------------------------------------------------------------- */

CUresult real_cuCtxGetCurrent(CUcontext *context) { return *context = (CUcontext)1, CUDA_SUCCESS; }
CUresult real_cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
CUresult real_cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
CUresult real_cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
CUresult real_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    (void)device;
    return *uuid = (CUuuid){{0}}, CUDA_SUCCESS;
}

/* ---- cuMemAlloc ------------------------------------------------------------------------------------------------- */

static CUdeviceptr take_small(void) {
    for (unsigned block = 1; block < BLOCKS; block++) {
        if (large_bytes[block] || (pieces_in[block] && !small_in[block][0] && pieces_in[block] >= 32)) continue;
        if (pieces_in[block] && !small_in[block][31]) continue;
        for (unsigned n = 0; n < 31; n++) {
            if (small_in[block][n]) continue;
            if (!pieces_in[block]++) grew(BLOCK_BYTES);
            small_in[block][n] = 1;
            small_in[block][31] = 1; /* a block of small ones */
            return block * BLOCK_BYTES + n * (uint64_t)SMALL;
        }
    }
    return 0;
}

static CUdeviceptr take_large(uint64_t bytes) {
    const unsigned count = (unsigned)(round_up(bytes, BLOCK_BYTES) / BLOCK_BYTES);
    unsigned found = 0;
    for (unsigned block = 1; block < BLOCKS; block++) {
        found = pieces_in[block] ? 0 : found + 1;
        if (found < count) continue;
        for (unsigned n = block + 1 - count; n <= block; n++) pieces_in[n] = 1;
        large_bytes[block + 1 - count] = count * BLOCK_BYTES;
        grew(count * BLOCK_BYTES);
        return (block + 1 - count) * BLOCK_BYTES;
    }
    return 0;
}

CUresult real_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    LOCKED(*address = fails() ? 0 : bytes <= SMALL ? take_small() : take_large(bytes));
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult give(CUdeviceptr address) {
    const uint64_t block = address / BLOCK_BYTES;
    if (block >= BLOCKS || !pieces_in[block]) return CUDA_ERROR_INVALID_VALUE;
    if (large_bytes[block]) {
        for (uint64_t n = 0; n < large_bytes[block] / BLOCK_BYTES; n++) pieces_in[block + n] = 0;
        used_bytes -= large_bytes[block];
        large_bytes[block] = 0;
        return CUDA_SUCCESS;
    }
    small_in[block][address % BLOCK_BYTES / SMALL] = 0;
    if (--pieces_in[block]) return CUDA_SUCCESS;
    small_in[block][31] = 0;
    used_bytes -= BLOCK_BYTES;
    return CUDA_SUCCESS;
}

CUresult real_cuMemFree_v2(CUdeviceptr address) {
    LOCKED(const CUresult result = fails() ? CUDA_ERROR_UNKNOWN : give(address));
    return result;
}

/* ---- a pool: addresses beyond all blocks, grows by 32 MiB ------------------------------------------------------- */

#define GROWTH (32ull << 20)

CUresult real_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    return (void)device, *pool = (CUmemoryPool)16, CUDA_SUCCESS;
}
CUresult real_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    return real_cuDeviceGetMemPool(pool, device);
}

CUresult real_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    (void)stream;
    pthread_mutex_lock(&lock);
    const bool failed = fails();
    if (!failed && pool_reserved - pool_used < bytes) {
        const uint64_t more = round_up(bytes - (pool_reserved - pool_used), GROWTH);
        pool_reserved += more;
        grew(more);
    }
    if (!failed) pool_used += bytes;
    pthread_mutex_unlock(&lock);
    *address = (1ull << 40) + bytes; /* encodes the number of bytes */
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult real_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    (void)stream;
    LOCKED(pool_used -= address - (1ull << 40));
    return CUDA_SUCCESS;
}

CUresult real_cuMemPoolGetAttribute(CUmemoryPool pool, unsigned attribute, void *value) {
    (void)pool, (void)attribute;
    LOCKED(*(uint64_t *)value = pool_reserved);
    return CUDA_SUCCESS;
}

CUresult real_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    (void)pool, (void)keep;
    LOCKED(const uint64_t left = round_up(pool_used, GROWTH); used_bytes -= pool_reserved - left; pool_reserved = left);
    return CUDA_SUCCESS;
}

/* ---- virtual memory: handles are numbers, addresses too --------------------------------------------------------- */

CUresult real_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *like,
                          unsigned long long flags) {
    (void)like, (void)flags;
    pthread_mutex_lock(&lock);
    unsigned n = 1;
    while (n < PIECES && physical[n]) n++;
    const bool failed = fails() || n == PIECES;
    if (!failed) physical[n] = bytes, references[n] = 1, grew(bytes);
    pthread_mutex_unlock(&lock);
    *handle = n;
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void let_go(uint64_t n) {
    if (references[n] || mapped[n]) return;
    used_bytes -= physical[n];
    physical[n] = 0;
}

CUresult real_cuMemRelease(CUmemGenericAllocationHandle handle) {
    pthread_mutex_lock(&lock);
    const bool wrong = handle >= PIECES || !references[handle] || fails();
    if (!wrong) references[handle]--, let_go(handle);
    pthread_mutex_unlock(&lock);
    return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* An address encodes the handle's number, in the upper half of the address space. */
#define MAPPED_AT(handle) ((1ull << 46) + (handle) * BLOCK_BYTES)

CUresult real_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
    (void)bytes, (void)offset, (void)flags;
    pthread_mutex_lock(&lock);
    const bool wrong = handle >= PIECES || !references[handle] || address != MAPPED_AT(handle) || fails();
    if (!wrong) mapped[handle]++;
    pthread_mutex_unlock(&lock);
    return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult real_cuMemUnmap(CUdeviceptr address, size_t bytes) {
    const uint64_t handle = (address - (1ull << 46)) / BLOCK_BYTES;
    (void)bytes;
    pthread_mutex_lock(&lock);
    const bool wrong = handle >= PIECES || !mapped[handle] || fails();
    if (!wrong) mapped[handle]--, let_go(handle);
    pthread_mutex_unlock(&lock);
    return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
