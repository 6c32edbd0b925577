/* Pools: memory that is allocated and freed in stream order.
 *
 * An allocation takes effect at once, since nothing computes here; a free takes effect at once for the same stream, and
 * for others when the work before it is done. Unused memory stays with the pool until a thread synchronizes and it
 * exceeds the release threshold, until it is trimmed, or until the card is full. Not modelled: an internal dependency
 * that makes memory available which another stream has freed but not reached.
 */
#include "heap.h"

#include <stdlib.h>

static struct cuda_pool *pools;
static struct cuda_pool *standard[2][SIM_CARDS], *current[2][SIM_CARDS]; /* by whether managed, then by ordinal */

/* ---- pools ------------------------------------------------------------------------------------------------------- */

bool pool_valid(const struct cuda_pool *pool) {
    const struct cuda_pool *each = pools;
    while (each && each != pool) each = each->next;
    return each && !each->destroyed;
}

struct cuda_pool *pool_new(struct device *device, bool managed, u32 handle_types, u64 most) {
    struct cuda_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    *pool = (struct cuda_pool){.reuse = {1, 1, 1}, .handle_types = handle_types, .managed = managed, .next = pools};
    pool->heap = (struct heap){
        .device = device,
        .pool = pool,
        .kind = managed ? SIM_MANAGED : SIM_POOL,
        .exposed = managed,
        .growth = POOL_GROWTH,
        .whole_from = UINT64_MAX,
        .most = round_up(most < ARENA_BYTES ? most : 0, POOL_GROWTH),
    };
    pools = pool;
    return pool;
}

struct cuda_pool *pool_standard(struct device *device, bool managed) {
    struct cuda_pool **pool = &standard[managed][device->ordinal];
    if (!*pool) *pool = pool_new(device, managed, CU_MEM_HANDLE_TYPE_NONE, 0);
    return *pool;
}

struct cuda_pool *pool_current(struct device *device, bool managed) {
    struct cuda_pool *chosen = current[managed][device->ordinal];
    return chosen ? chosen : pool_standard(device, managed);
}

CUresult pool_choose(struct device *device, bool managed, struct cuda_pool *pool) {
    if (!pool_valid(pool) || pool->heap.device != device || pool->imported) return CUDA_ERROR_INVALID_VALUE;
    if (pool->managed != managed) return CUDA_ERROR_INVALID_VALUE;
    current[managed][device->ordinal] = pool;
    return CUDA_SUCCESS;
}

/* Frees destroyed pools that are no longer in use. */
static void pools_reap(void) {
    for (struct cuda_pool **link = &pools; *link;) {
        struct cuda_pool *pool = *link;
        if (pool->destroyed && pool->heap.used == 0) heap_trim(&pool->heap, 0);
        if (!pool->destroyed || pool->heap.chunks) {
            link = &pool->next;
            continue;
        }
        *link = pool->next;
        free(pool);
    }
}

CUresult pool_destroy(struct cuda_pool *pool) {
    if (!pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    const int ordinal = pool->heap.device->ordinal;
    if (pool == standard[pool->managed][ordinal]) return CUDA_ERROR_INVALID_VALUE;
    if (pool == current[pool->managed][ordinal]) current[pool->managed][ordinal] = NULL;
    pool->destroyed = true;
    pools_reap();
    return CUDA_SUCCESS;
}

bool pools_trim(const struct device *device) {
    bool gone = false;
    for (struct cuda_pool *pool = pools; pool; pool = pool->next)
        if (pool->heap.device == device && heap_trim(&pool->heap, 0)) gone = true;
    return gone;
}

void pools_settle(const struct device *device) {
    for (struct cuda_pool *pool = pools; pool; pool = pool->next)
        if (pool->heap.device == device && pool->heap.reserved > pool->threshold)
            heap_trim(&pool->heap, pool->threshold);
    pools_reap();
}

void pools_device_gone(const struct device *device) {
    for (struct range *range = ranges_all, *next; range; range = next) {
        next = range->next;
        if (range->device == device && (range->kind == RANGE_POOL || range->kind == RANGE_POOL_IPC)) range->gone(range);
    }
    for (struct cuda_pool *pool = pools; pool; pool = pool->next)
        if (pool->heap.device == device) heap_empty(&pool->heap);
    pools_reap();
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

static CUresult pool_take(struct cuda_pool *pool, u64 bytes, const struct cuda_stream *stream, CUdeviceptr *address) {
    struct segment *segment;
    if (pool->imported) return CUDA_ERROR_INVALID_VALUE;
    TRY(heap_take(&pool->heap, bytes, order_known(order_key(stream)), &segment));
    return segment_range(segment, bytes, RANGE_POOL, address);
}

/* `pool` NULL: the current one of the stream's device. */
static CUresult allocate(CUdeviceptr *address, size_t bytes, struct cuda_pool *pool, bool named, CUstream handle,
                         bool own) {
    struct cuda_stream *stream;
    bool capturing;
    TRY(stream_of(handle, own, &stream));
    if (!address) return CUDA_ERROR_INVALID_VALUE;
    TRY(stream_begin(stream, &capturing));
    if (capturing) return bytes ? graph_memory_capture(stream, bytes, address) : CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    if (!named) pool = pool_current(stream_device(stream), false);
    if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
    if (named && !pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (!bytes) return *address = 0, CUDA_SUCCESS;
    return pool_take(pool, bytes, stream, address);
}

CALL_TWICE(cuMemAllocAsync, _ptsz, allocate(address, bytes, NULL, false, stream, per_thread), CUdeviceptr *address,
           size_t bytes, CUstream stream)

CALL_TWICE(cuMemAllocFromPoolAsync, _ptsz, allocate(address, bytes, pool, true, stream, per_thread),
           CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
