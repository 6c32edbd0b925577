/* Managed memory: addresses shared by program and card. It is host memory here, of any size, and charged to the card as
 * if it were there from the beginning, as far as there is room. On a card whose profile has no paging rates, it must
 * fit completely, or the allocation fails. */
#include "memory.h"

#include <stdlib.h>

enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };

struct managed {
    u64 piece;
};

static void managed_gone(struct range *range) {
    struct managed *managed = range->owner;
    const u64 rounded = round_up(range->bytes, BLOCK_BYTES);
    piece_give(managed->piece);
    arena_restore(range->start, rounded);
    arena_give(range->start, rounded);
    free(managed);
    range_remove(range);
}

static CUresult managed_take(struct cuda_context *context, u64 bytes, u32 flags, CUdeviceptr *address) {
    LOCKED;
    const u64 rounded = round_up(bytes, BLOCK_BYTES);
    struct managed *managed = calloc(1, sizeof *managed);
    const u64 start = managed ? arena_take(rounded, 0) : 0;
    const struct range like = {
        .start = start,
        .bytes = bytes,
        .kind = RANGE_MANAGED,
        .flags = flags,
        .device = context->device,
        .context = context,
        .data = (char *)start,
        .owner = managed,
        .gone = managed_gone,
    };
    CUresult result =
        start ? piece_take(context->device, SIM_MANAGED, rounded, &managed->piece) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !(arena_expose(start, rounded) && range_add(&like))) {
        piece_give(managed->piece);
        arena_restore(start, rounded);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        if (start) arena_give(start, rounded);
        free(managed);
        return result;
    }
    *address = start;
    return CUDA_SUCCESS;
}

static u64 takes_ns(u64 bytes, u64 rate) { return rate ? (u64)((unsigned __int128)bytes * SIM_NS_PER_S / rate) : 0; }

CUresult managed_faults(const struct device *device, u64 *duration_ns) {
    LOCKED;
    const struct sim_model *model = &device->about->model;
    u64 came, left;
    TRY(pieces_page(device, &came, &left));
    *duration_ns = takes_ns(came, model->fault_rate) + takes_ns(left, model->evict_rate);
    return CUDA_SUCCESS;
}

CALL(cuMemAllocManaged, CUdeviceptr *address, size_t bytes, unsigned flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!address || !bytes || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > ARENA_BYTES) return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(capture_forbids_unsafe());
    return managed_take(context, bytes, flags, address);
}
