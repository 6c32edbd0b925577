/* Pool functions, except for allocating from pools and sharing them. */
#include "heap.h"

/* ---- creation and selection -------------------------------------------------------------------------------------- */

/* Managed memory need not prefer a device; it is then charged to the current one, or to the first. */
static CUresult managed_device(const CUmemLocation *location, struct device **device) {
    struct cuda_context *context;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN) return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) return device_of(location->id, device);
    if (location->type > CU_MEM_LOCATION_TYPE_HOST_NUMA) return CUDA_ERROR_INVALID_VALUE;
    if (context_current(&context) != CUDA_SUCCESS) return device_of(0, device);
    *device = context->device;
    return CUDA_SUCCESS;
}

static CUresult device_for(const CUmemLocation *location, u32 type, struct device **device) {
    TRY(driver_ready());
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return managed_device(location, device);
    return type == CU_MEM_ALLOCATION_TYPE_PINNED ? location_device(location, device) : CUDA_ERROR_INVALID_VALUE;
}

static bool is_managed(u32 type) { return type == CU_MEM_ALLOCATION_TYPE_MANAGED; }

CALL(cuMemPoolCreate, CUmemoryPool *made, const CUmemPoolProps *like) {
    struct device *device;
    TRY(driver_ready());
    if (!made || !like) return CUDA_ERROR_INVALID_VALUE;
    if (is_managed(like->type) && (like->handle_types || like->most_bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (like->handle_types & ~(u32)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult found = device_for(&like->location, like->type, &device);
    if (found != CUDA_SUCCESS) return found == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : found;
    LOCKED;
    struct cuda_pool *pool = pool_new(device, is_managed(like->type), like->handle_types, like->most_bytes);
    if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = pool;
    return CUDA_SUCCESS;
}

CALL(cuMemPoolDestroy, CUmemoryPool pool) {
    TRY(driver_ready());
    LOCKED;
    return pool_destroy(pool);
}

/* A pool of the device, chosen by `which`. */
static CUresult give(CUmemoryPool *found, struct cuda_pool *(*which)(struct device *, bool), struct device *device,
                     bool managed) {
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    struct cuda_pool *pool = which(device, managed);
    if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
    *found = pool;
    return CUDA_SUCCESS;
}

static CUresult choose(struct cuda_pool *pool, struct device *device, bool managed) {
    LOCKED;
    return pool_choose(device, managed, pool);
}

/* By device number and, since 13.0, by location and type. */
static CUresult give_of_device(CUmemoryPool *found, struct cuda_pool *(*which)(struct device *, bool),
                               CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    return give(found, which, device, false);
}

static CUresult give_of_place(CUmemoryPool *found, struct cuda_pool *(*which)(struct device *, bool),
                              const CUmemLocation *location, unsigned type) {
    struct device *device;
    TRY(device_for(location, type, &device));
    return give(found, which, device, is_managed(type));
}

CALL(cuDeviceGetDefaultMemPool, CUmemoryPool *pool, CUdevice ordinal) {
    return give_of_device(pool, pool_standard, ordinal);
}
CALL(cuDeviceGetMemPool, CUmemoryPool *pool, CUdevice ordinal) { return give_of_device(pool, pool_current, ordinal); }
CALL(cuMemGetDefaultMemPool, CUmemoryPool *pool, const CUmemLocation *location, unsigned type) {
    return give_of_place(pool, pool_standard, location, type);
}
CALL(cuMemGetMemPool, CUmemoryPool *pool, const CUmemLocation *location, unsigned type) {
    return give_of_place(pool, pool_current, location, type);
}

CALL(cuDeviceSetMemPool, CUdevice ordinal, CUmemoryPool pool) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    return choose(pool, device, false);
}
CALL(cuMemSetMemPool, const CUmemLocation *location, unsigned type, CUmemoryPool pool) {
    struct device *device;
    TRY(device_for(location, type, &device));
    return choose(pool, device, is_managed(type));
}

CALL(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep) {
    TRY(driver_ready());
    TRY(capture_forbids_unsafe());
    LOCKED;
    if (!pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    heap_trim(&pool->heap, keep < ARENA_BYTES ? keep : ARENA_BYTES);
    return CUDA_SUCCESS;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* High-water marks can only be reset, to the current value. */
static CUresult reset(u64 *high, u64 now, u64 value) {
    if (value) return CUDA_ERROR_INVALID_VALUE;
    *high = now;
    return CUDA_SUCCESS;
}

CALL(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    TRY(driver_ready());
    LOCKED;
    if (!value || !pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    struct heap *heap = &pool->heap;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool->reuse[attribute - 1] = *(int *)value; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(u64 *)value; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return reset(&heap->reserved_high, heap->reserved, *(u64 *)value);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return reset(&heap->used_high, heap->used, *(u64 *)value);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CALL(cuMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    TRY(driver_ready());
    LOCKED;
    if (!value || !pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    const struct heap *heap = &pool->heap;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = pool->reuse[attribute - 1]; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(u64 *)value = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(u64 *)value = heap->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(u64 *)value = heap->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(u64 *)value = heap->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(u64 *)value = heap->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* ---- access ------------------------------------------------------------------------------------------------------ */
