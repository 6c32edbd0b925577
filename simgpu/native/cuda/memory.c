/* cuMemAlloc and related functions: memory of a context, cut from 2 MiB blocks, and what is freed with a context. */
#include "heap.h"

#include <stdlib.h>

static struct heap *heaps; /* one per context that allocated */

static struct heap *heap_known(const struct cuda_context *context) {
    struct heap *heap = heaps;
    while (heap && heap->context != context) heap = heap->next;
    return heap;
}

/* Locked. */
static struct heap *heap_of(struct cuda_context *context) {
    struct heap *heap = heap_known(context);
    if (heap) return heap;
    heap = calloc(1, sizeof *heap);
    if (!heap) return NULL;
    *heap = (struct heap){
        .device = context->device,
        .context = context,
        .kind = SIM_BLOCK,
        .growth = BLOCK_BYTES,
        .whole_from = WHOLE_FROM + 1,
        .next = heaps,
    };
    heaps = heap;
    return heap;
}

static CUresult block_take(struct cuda_context *context, u64 bytes, CUdeviceptr *address) {
    LOCKED;
    struct heap *heap = heap_of(context);
    struct segment *segment;
    if (!heap) return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(heap_take(heap, bytes, NULL, &segment));
    return segment_range(segment, bytes, RANGE_BLOCK, address);
}

CALL(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    TRY(capture_forbids_unsafe());
    return block_take(context, bytes, address);
}

CALL(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!address || !pitch || !width || !height) return CUDA_ERROR_INVALID_VALUE;
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return CUDA_ERROR_INVALID_VALUE;
    if (width > ARENA_BYTES || height > ARENA_BYTES / round_up(width, PITCH)) return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(capture_forbids_unsafe());
    TRY(block_take(context, round_up(width, PITCH) * height, address));
    *pitch = round_up(width, PITCH);
    return CUDA_SUCCESS;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

CALL(cuMemGetInfo_v2, size_t *unused, size_t *total) {
    struct cuda_context *context;
    TRY(context_current(&context));
    const struct sim_card *about = context->device->about;
    const u64 all = about->model.memory - about->model.reserved;
    const u64 used = atomic_load(&about->live.used);
    if (unused) *unused = used < all ? all - used : 0;
    if (total) *total = all;
    return CUDA_SUCCESS;
}

CALL(cuMemGetAddressRange_v2, CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    const struct range *range = range_at(address);
    if (!range || range->kind == RANGE_ARRAY) return CUDA_ERROR_NOT_FOUND;
    if (start) *start = range->start;
    if (bytes) *bytes = range->bytes;
    return CUDA_SUCCESS;
}

/* ---- a context's end --------------------------------------------------------------------------------------------- */

/* Freeing one range may free others that belong to the same object, so each search starts over. */
static struct range *range_of_context(const struct cuda_context *context) {
    struct range *range = ranges_all;
    while (range && range->context != context) range = range->next;
    return range;
}

static void heap_gone(const struct cuda_context *context) {
    struct heap *heap = heap_known(context);
    if (!heap) return;
    UNLINK(heaps, heap, next);
    heap_empty(heap);
    free(heap);
}

void memory_context_gone(struct cuda_context *context) {
    LOCKED;
    for (struct range *range; (range = range_of_context(context));) range->gone(range);
    heap_gone(context);
    arrays_context_gone(context);
    if (context->device->contexts > 1) return;
    pools_device_gone(context->device);
    graph_memory_device_gone(context->device);
    vmm_device_gone(context->device);
}
