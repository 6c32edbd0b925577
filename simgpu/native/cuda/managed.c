/* Managed memory: addresses that program and card share. It is host memory here, of any size, and charged to the card
 * in full as if it always lay there. Advice and prefetches are remembered, and a prefetch takes its time. */
#include "memory.h"

#include <stdlib.h>

enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2, CPU = -1, NOWHERE = -2 };
enum { SET_READ_MOSTLY = 1, UNSET_READ_MOSTLY, SET_PREFERRED, UNSET_PREFERRED, SET_ACCESSED_BY, UNSET_ACCESSED_BY };
enum {
    READ_MOSTLY = 1,
    PREFERRED,
    ACCESSED_BY,
    PREFETCHED,
    PREFERRED_TYPE,
    PREFERRED_ID,
    PREFETCHED_TYPE,
    PREFETCHED_ID
};

struct managed {
    u64 piece;
    u32 read_mostly;
    u32 accessed_by; /* bit n + 1: device n; bit 0: the CPU */
    CUmemLocation preferred, prefetched;
};

static CUresult managed_take(struct context *context, u64 bytes, u32 flags, CUdeviceptr *address) {
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

void managed_free(struct range *range) {
    struct managed *managed = range->owner;
    const u64 rounded = round_up(range->bytes, BLOCK_BYTES);
    piece_give(managed->piece);
    arena_restore(range->start, rounded);
    arena_give(range->start, rounded);
    free(managed);
    range_remove(range);
}

CALL(cuMemAllocManaged, CUdeviceptr *address, size_t bytes, unsigned flags) {
    struct context *context;
    TRY(context_current(&context));
    if (!address || !bytes || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > ARENA_BYTES) return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(capture_forbids_unsafe());
    return managed_take(context, bytes, flags, address);
}

/* ---- where it lies ----------------------------------------------------------------------------------------------- */

static CUmemLocation location_of(CUdevice ordinal) {
    if (ordinal == CPU) return (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
    return (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
}

static CUresult check_location(CUmemLocation location) {
    struct device *device;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return device_of(location.id, &device);
    return location.type >= CU_MEM_LOCATION_TYPE_HOST && location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUdevice ordinal_of(CUmemLocation location) {
    if (location.type == CU_MEM_LOCATION_TYPE_INVALID) return NOWHERE;
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CPU;
}

/* Locked: what all of these bytes belong to, or NULL: one allocation at a time, which is what programs do. */
static struct managed *managed_at(u64 address, u64 bytes) {
    const struct range *range = range_at(address);
    if (!range || range->kind != RANGE_MANAGED || !bytes) return NULL;
    return bytes <= range->start + range->bytes - address ? range->owner : NULL;
}

static CUresult prefetch_note(u64 address, u64 bytes, CUmemLocation location) {
    LOCKED;
    struct managed *managed = managed_at(address, bytes);
    if (!managed) return CUDA_ERROR_INVALID_VALUE;
    managed->prefetched = location;
    return CUDA_SUCCESS;
}

static CUresult prefetch(u64 address, u64 bytes, CUmemLocation location, u32 flags, CUstream handle, bool own) {
    struct stream *stream;
    bool capturing;
    TRY(stream_of(handle, own, &stream));
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    TRY(check_location(location));
    TRY(stream_begin(stream, &capturing));
    if (capturing) return CUDA_ERROR_NOT_SUPPORTED;
    TRY(prefetch_note(address, bytes, location));
    return stream_enqueue(stream, transfer_ns(stream_device(stream), bytes, true), NULL);
}

CALL(cuMemPrefetchAsync, CUdeviceptr address, size_t bytes, CUdevice to, CUstream stream) {
    return prefetch(address, bytes, location_of(to), 0, stream, false);
}

CALL(cuMemPrefetchAsync_ptsz, CUdeviceptr address, size_t bytes, CUdevice to, CUstream stream) {
    return prefetch(address, bytes, location_of(to), 0, stream, true);
}

CALL(cuMemPrefetchAsync_v2, CUdeviceptr address, size_t bytes, CUmemLocation to, unsigned flags, CUstream stream) {
    return prefetch(address, bytes, to, flags, stream, false);
}

CALL(cuMemPrefetchAsync_v2_ptsz, CUdeviceptr address, size_t bytes, CUmemLocation to, unsigned flags, CUstream stream) {
    return prefetch(address, bytes, to, flags, stream, true);
}

/* ---- advice ------------------------------------------------------------------------------------------------------ */

static u32 accessor(CUmemLocation location) { return 1u << (ordinal_of(location) + 1); }

CALL(cuMemAdvise_v2, CUdeviceptr address, size_t bytes, unsigned advice, CUmemLocation location) {
    TRY(driver_ready());
    if (advice >= SET_PREFERRED && advice != UNSET_PREFERRED) TRY(check_location(location));
    LOCKED;
    struct managed *managed = managed_at(address, bytes);
    if (!managed) return CUDA_ERROR_INVALID_VALUE;
    switch (advice) {
    case SET_READ_MOSTLY:
    case UNSET_READ_MOSTLY: managed->read_mostly = advice == SET_READ_MOSTLY; break;
    case SET_PREFERRED: managed->preferred = location; break;
    case UNSET_PREFERRED: managed->preferred = (CUmemLocation){0}; break;
    case SET_ACCESSED_BY: managed->accessed_by |= accessor(location); break;
    case UNSET_ACCESSED_BY: managed->accessed_by &= ~accessor(location); break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CALL(cuMemAdvise, CUdeviceptr address, size_t bytes, unsigned advice, CUdevice device) {
    return cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* As many ordinals as there is room for; the rest of the room says nowhere. */
static void list_accessors(const struct managed *managed, int *list, size_t room) {
    size_t count = 0;
    for (int bit = 0; bit < 32 && count < room; bit++)
        if (managed->accessed_by & 1u << bit) list[count++] = bit - 1;
    while (count < room) list[count++] = NOWHERE;
}

static CUresult answer(const struct managed *managed, u32 attribute, int *data, size_t bytes) {
    if (attribute == ACCESSED_BY && bytes && bytes % sizeof *data == 0) {
        list_accessors(managed, data, bytes / sizeof *data);
        return CUDA_SUCCESS;
    }
    if (bytes != sizeof *data) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case READ_MOSTLY: *data = (int)managed->read_mostly; break;
    case PREFERRED: *data = ordinal_of(managed->preferred); break;
    case PREFETCHED: *data = ordinal_of(managed->prefetched); break;
    case PREFERRED_TYPE: *data = (int)managed->preferred.type; break;
    case PREFERRED_ID: *data = managed->preferred.id; break;
    case PREFETCHED_TYPE: *data = (int)managed->prefetched.type; break;
    case PREFETCHED_ID: *data = managed->prefetched.id; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CALL(cuMemRangeGetAttribute, void *data, size_t bytes, unsigned attribute, CUdeviceptr address, size_t count) {
    TRY(driver_ready());
    LOCKED;
    const struct managed *managed = managed_at(address, count);
    return data && managed ? answer(managed, attribute, data, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemRangeGetAttributes, void **data, size_t *bytes, unsigned *attributes, size_t asked, CUdeviceptr address,
     size_t count) {
    TRY(driver_ready());
    if (!data || !bytes || !attributes || !asked) return CUDA_ERROR_INVALID_VALUE;
    for (size_t n = 0; n < asked; n++) TRY(cuMemRangeGetAttribute(data[n], bytes[n], attributes[n], address, count));
    return CUDA_SUCCESS;
}
