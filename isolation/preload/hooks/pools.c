/* Memory pools and stream-ordered allocation. */
#include "../memory/reserves.h"
#include "../memory/shared.h"
#include "hooks.h"

#include <string.h>

REAL_CALL(cuStreamGetCtx, CUstream stream, CUcontext *context);
REAL_CALL(cuStreamIsCapturing, CUstream stream, int *status);
REAL_CALL(cuStreamIsCapturing_ptsz, CUstream stream, int *status);
REAL_CALL(cuDeviceGetMemPool, CUmemoryPool *pool, CUdevice device);
REAL_CALL(cuCtxGetCurrent, CUcontext *context);
REAL_CALL(cuCtxGetDevice, CUdevice *device);
REAL_CALL(cuMemFreeAsync, CUdeviceptr address, CUstream stream);
REAL_CALL(cuMemFreeAsync_ptsz, CUdeviceptr address, CUstream stream);

/* A pool grows in steps of this size, unless one allocation is larger; observed on real cards. */
#define POOL_GROWTH (32ull << 20)

/* ---- where a call goes ------------------------------------------------------------------------------------------ */

/* Default streams belong to the current context; usually others do too. */
static bool device_of_stream(CUstream stream, CUdevice *device) {
    CUcontext current, context;
    if (DRIVER(REAL(cuCtxGetCurrent)(&current)) != CUDA_SUCCESS) return false;
    if (stream > CU_STREAM_PER_THREAD && DRIVER(REAL(cuStreamGetCtx)(stream, &context)) == CUDA_SUCCESS &&
        context != current)
        return device_of_context(context, device);
    if (DRIVER(REAL(cuCtxGetDevice)(device)) != CUDA_SUCCESS) return false;
    context_met(card_of(*device), current);
    return true;
}

static CUmemLocation place_of(CUdevice device) { return (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device}; }

static struct reserve *current_pool(CUdevice device) {
    CUmemoryPool pool;
    const CUmemLocation place = place_of(device);
    if (DRIVER(REAL(cuDeviceGetMemPool)(&pool, device)) != CUDA_SUCCESS) return NULL;
    return reserve_met_pool(pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
}

/* ---- allocating ------------------------------------------------------------------------------------------------- */

struct wish {
    size_t bytes;
    bool named; /* the program named the pool; otherwise it is the current one */
    CUmemoryPool pool;
    CUstream stream;
    bool per_thread; /* which default stream NULL means */
};

REAL_CALL(cuMemAllocAsync, CUdeviceptr *address, size_t bytes, CUstream stream);
REAL_CALL(cuMemAllocAsync_ptsz, CUdeviceptr *address, size_t bytes, CUstream stream);
REAL_CALL(cuMemAllocFromPoolAsync, CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);
REAL_CALL(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);

static CUresult ask_driver(CUdeviceptr *address, const struct wish *wish) {
    if (wish->named && wish->per_thread)
        return DRIVER(REAL(cuMemAllocFromPoolAsync_ptsz)(address, wish->bytes, wish->pool, wish->stream));
    if (wish->named) return DRIVER(REAL(cuMemAllocFromPoolAsync)(address, wish->bytes, wish->pool, wish->stream));
    if (wish->per_thread) return DRIVER(REAL(cuMemAllocAsync_ptsz)(address, wish->bytes, wish->stream));
    return DRIVER(REAL(cuMemAllocAsync)(address, wish->bytes, wish->stream));
}

static void give_back(CUdeviceptr address, const struct wish *wish) {
    if (wish->per_thread)
        DRIVER(REAL(cuMemFreeAsync_ptsz)(address, wish->stream));
    else
        DRIVER(REAL(cuMemFreeAsync)(address, wish->stream));
}

bool stream_captures(CUstream stream, bool per_thread) {
    int status = 0;
    const CUresult result = per_thread ? DRIVER(REAL(cuStreamIsCapturing_ptsz)(stream, &status))
                                       : DRIVER(REAL(cuStreamIsCapturing)(stream, &status));
    return result == CUDA_SUCCESS && status;
}

/* A captured allocation is memory of a graph and takes nothing now. Checked only when the call would be refused. */
static CUresult allocate(CUdeviceptr *address, struct reserve *reserve, const struct wish *wish) {
    const uint64_t most = wish->bytes < UINT64_MAX / 2 ? round_up(wish->bytes, POOL_GROWTH) : UINT64_MAX / 2;
    CUdeviceptr made;
    if (reserve_is_left(reserve)) return CUDA_ERROR_INVALID_VALUE;
    account_keep(reserve_card(reserve), POOL_GROWTH);
    CUresult result = account_begin(reserve_card(reserve), most);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && stream_captures(wish->stream, wish->per_thread))
        return ask_driver(address, wish);
    if (result != CUDA_SUCCESS) return result;
    reserve_begin(reserve, most);
    result = ask_driver(&made, wish);
    const CUresult allowed = reserve_end(reserve, most) ? CUDA_SUCCESS : account_exceed(reserve_card(reserve));
    if (result != CUDA_SUCCESS) return result;
    if (allowed != CUDA_SUCCESS) return give_back(made, wish), allowed;
    *address = made;
    return CUDA_SUCCESS;
}

/* A card that was not granted has no memory for this container. */
static CUresult allocate_current(CUdeviceptr *address, const struct wish *wish) {
    CUdevice device;
    if (!address || !device_of_stream(wish->stream, &device)) return ask_driver(address, wish);
    struct reserve *reserve = current_pool(device);
    return reserve ? allocate(address, reserve, wish) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A pool that was not obtained through our hooks is refused memory: an imported pool has none of its own, and the kind
 * of any other is unknown. */
static CUresult allocate_named(CUdeviceptr *address, const struct wish *wish) {
    if (!address || reserve_pool_on_host(wish->pool)) return ask_driver(address, wish);
    struct reserve *reserve = reserve_of_pool(wish->pool);
    return reserve ? allocate(address, reserve, wish) : CUDA_ERROR_INVALID_VALUE;
}

HOOK_CALL(cuMemAllocAsync, CUdeviceptr *address, size_t bytes, CUstream stream) {
    return allocate_current(address, &(struct wish){bytes, false, NULL, stream, false});
}

HOOK_CALL(cuMemAllocAsync_ptsz, CUdeviceptr *address, size_t bytes, CUstream stream) {
    return allocate_current(address, &(struct wish){bytes, false, NULL, stream, true});
}

HOOK_CALL(cuMemAllocFromPoolAsync, CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    return allocate_named(address, &(struct wish){bytes, true, pool, stream, false});
}

HOOK_CALL(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    return allocate_named(address, &(struct wish){bytes, true, pool, stream, true});
}

/* ---- freeing ---------------------------------------------------------------------------------------------------- */

/* Freeing changes nothing of a pool until it shrinks. Memory of cuMemAlloc may also be freed here; the driver may still
 * hold it on return, so it does not become our credit but is returned to the broker, which measures the card. */
static CUresult free_later(CUdeviceptr address, CUstream stream, CUresult (*call)(CUdeviceptr, CUstream)) {
    struct entry what;
    const bool held = held_take(HELD_MEMORY, address, &what), opened = !held && shared_take(address, &what);
    const CUresult result = DRIVER(call(address, stream));
    if (held) held_end(HELD_MEMORY, &what, result == CUDA_SUCCESS, false);
    if (opened) shared_taken(&what, result == CUDA_SUCCESS);
    return result;
}

HOOK_CALL(cuMemFreeAsync, CUdeviceptr address, CUstream stream) {
    return free_later(address, stream, REAL(cuMemFreeAsync));
}

HOOK_CALL(cuMemFreeAsync_ptsz, CUdeviceptr address, CUstream stream) {
    return free_later(address, stream, REAL(cuMemFreeAsync_ptsz));
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

HOOK_CALL(cuMemPoolDestroy, CUmemoryPool pool) {
    struct reserve *reserve = reserve_of_pool(pool);
    if (reserve) return reserve_destroy(reserve);
    const CUresult result = DRIVER(REAL(cuMemPoolDestroy)(pool));
    if (result == CUDA_SUCCESS) reserve_pool_gone(pool);
    return result;
}

HOOK_CALL(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *like) {
    CUmemoryPool made;
    if (!pool || !like) return DRIVER(REAL(cuMemPoolCreate)(pool, like));
    TRY(DRIVER(REAL(cuMemPoolCreate)(&made, like)));
    if (!reserve_met_pool(made, &like->location, like->type) && !reserve_pool_on_host(made)) {
        DRIVER(REAL(cuMemPoolDestroy)(made));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pool = made;
    return CUDA_SUCCESS;
}

/* Handles the driver's result for a pool that a program may now name. A pool that cannot be recorded is refused
 * later. */
static CUresult met(CUresult result, const CUmemoryPool *pool, const CUmemLocation *location, unsigned type) {
    if (result == CUDA_SUCCESS && pool && location) reserve_met_pool(*pool, location, type);
    return result;
}

HOOK_CALL(cuDeviceGetDefaultMemPool, CUmemoryPool *pool, CUdevice device) {
    const CUmemLocation place = place_of(device);
    const CUresult result = DRIVER(REAL(cuDeviceGetDefaultMemPool)(pool, device));
    return met(result, pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
}

HOOK_CALL(cuDeviceGetMemPool, CUmemoryPool *pool, CUdevice device) {
    const CUmemLocation place = place_of(device);
    const CUresult result = DRIVER(REAL(cuDeviceGetMemPool)(pool, device));
    return met(result, pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
}

HOOK_CALL(cuMemGetDefaultMemPool, CUmemoryPool *pool, CUmemLocation *location, unsigned type) {
    return met(DRIVER(REAL(cuMemGetDefaultMemPool)(pool, location, type)), pool, location, type);
}

HOOK_CALL(cuMemGetMemPool, CUmemoryPool *pool, CUmemLocation *location, unsigned type) {
    return met(DRIVER(REAL(cuMemGetMemPool)(pool, location, type)), pool, location, type);
}

HOOK_CALL(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep) {
    struct reserve *reserve = reserve_of_pool(pool);
    if (!reserve) return DRIVER(REAL(cuMemPoolTrimTo)(pool, keep));
    if (reserve_is_left(reserve)) return CUDA_ERROR_INVALID_VALUE;
    reserve_begin_shrink(reserve);
    const CUresult result = DRIVER(REAL(cuMemPoolTrimTo)(pool, keep));
    reserve_end_shrink(reserve);
    return result;
}

/* ---- memory of pools in other processes -------------------------------------------------------------------------- */

REAL_CALL(cuPointerGetAttribute, void *value, unsigned attribute, CUdeviceptr address);

/* NULL: the pool is not accounted here. */
static struct reserve *pool_at(CUdeviceptr address) {
    enum { POOL_OF_ADDRESS = 17 };
    CUmemoryPool pool = NULL;
    if (DRIVER(REAL(cuPointerGetAttribute)(&pool, POOL_OF_ADDRESS, address)) != CUDA_SUCCESS) return NULL;
    return reserve_of_pool(pool);
}

HOOK_CALL(cuMemPoolExportPointer, CUmemPoolPtrExportData *data, CUdeviceptr address) {
    CUmemPoolPtrExportData made;
    if (!data) return DRIVER(REAL(cuMemPoolExportPointer)(data, address));
    TRY(DRIVER(REAL(cuMemPoolExportPointer)(&made, address)));
    struct reserve *reserve = pool_at(address);
    if (reserve) TRY(reserve_export(reserve, shared_name(&made, sizeof made)));
    memcpy(data, &made, sizeof made);
    return CUDA_SUCCESS;
}

HOOK_CALL(cuMemPoolImportPointer, CUdeviceptr *address, CUmemoryPool pool, const CUmemPoolPtrExportData *data) {
    CUdeviceptr made;
    uint64_t size;
    if (!address || !data || !session_cards()) return DRIVER(REAL(cuMemPoolImportPointer)(address, pool, data));
    const uint64_t name = shared_name(data, sizeof *data);
    TRY(shared_open(0, name, &size));
    CUresult result = DRIVER(REAL(cuMemPoolImportPointer)(&made, pool, data));
    if (result != CUDA_SUCCESS) return shared_close(0, name), result;
    shared_note(made, 0, name); /* without room for the record it counts as open for the life of the process */
    *address = made;
    return CUDA_SUCCESS;
}
