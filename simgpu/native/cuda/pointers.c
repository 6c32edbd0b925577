/* Pointer attributes. */
#include "heap.h"

enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

static u32 handle_types(const struct range *range) {
    if (range->kind != RANGE_POOL) return 0;
    const struct segment *segment = range->owner;
    return segment->chunk->heap->pool->handle_types;
}

static struct cuda_pool *pool_of(const struct range *range) {
    if (range->kind != RANGE_POOL) return NULL;
    const struct segment *segment = range->owner;
    return segment->chunk->heap->pool;
}

static bool is_managed(const struct range *range) {
    const struct cuda_pool *pool = pool_of(range);
    return range->kind == RANGE_MANAGED || (pool && pool->managed);
}

static bool on_host_too(const struct range *range) { return range_on_host(range) || is_managed(range); }

/* Memory without an address on that side: an error for a single attribute, NULL among several. */
static CUresult other_side(u64 address, bool there, void *data) {
    *(u64 *)data = there ? address : 0;
    return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult answer(const struct range *range, u32 attribute, u64 address, void *data) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(struct cuda_context **)data = range->context; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(u32 *)data = range_on_host(range) ? TYPE_HOST : TYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(u64 *)data = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return other_side(address, on_host_too(range), data);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(u32 *)data = 0; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *(u64 *)data = range->id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(u32 *)data = is_managed(range); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = range->device->ordinal; break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *(u32 *)data = range->kind == RANGE_BLOCK; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(u64 *)data = range->start; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(u64 *)data = range->bytes; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(u32 *)data = !range->closed; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *(u64 *)data = handle_types(range); break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(u32 *)data = 0; break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(u32 *)data = CU_MEM_ACCESS_READWRITE; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(struct cuda_pool **)data = pool_of(range); break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Locked: the ranges visible to programs; arrays have no address for them. */
static struct range *known(u64 address) {
    struct range *range = range_at(address);
    return range && range->kind != RANGE_ARRAY ? range : NULL;
}

CALL(cuPointerGetAttribute, void *data, CUpointer_attribute attribute, CUdeviceptr address) {
    TRY(driver_ready());
    LOCKED;
    const struct range *range = known(address);
    return data && range ? answer(range, attribute, address, data) : CUDA_ERROR_INVALID_VALUE;
}
