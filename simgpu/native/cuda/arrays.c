/* Arrays and mipmapped arrays: memory without an address that programs can use.
 *
 * A mipmapped array is an array with levels, in one piece. Only sizes follow the hardware. Sparse arrays are not
 * supported; deferred arrays have a size that can be queried, and no memory.
 */
#include "memory.h"

#include <stdlib.h>

enum { CUBE_FACES = 6 };

struct cuda_array {
    struct device *device;
    struct cuda_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    u32 levels;          /* 0: no mipmaps */
    u64 piece, address;  /* 0: no memory */
    u64 bytes;
    struct range *range; /* NULL: no memory */
    struct cuda_array *next;
};

static u64 at_least_1(u64 n) { return n ? n : 1; }

static bool planar(const CUDA_ARRAY3D_DESCRIPTOR *like) { return like->format == CU_AD_FORMAT_NV12; }

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Bytes of one channel; 0: unsupported format. */
static u64 channel_bytes(u32 format) {
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_NV12: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}

/* The second plane of NV12 has half as many rows, of the same length as the first plane's. */
static u64 rows_of(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    const u64 rows = at_least_1(like->height);
    return planar(like) ? rows + (rows + 1) / 2 : rows;
}

static u64 pitch_of(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return like->width * channel_bytes(like->format) * (planar(like) ? 1 : like->channels);
}

static u64 array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return round_up(pitch_of(like) * rows_of(like) * at_least_1(like->depth), ARRAY_TILE);
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    enum { MOST = 1 << 17 }; /* more than any side that hardware supports, and small enough for products */
    if (!like->width || like->width > MOST || like->height > MOST || like->depth > MOST)
        return CUDA_ERROR_INVALID_VALUE;
    if (!channel_bytes(like->format)) return CUDA_ERROR_INVALID_VALUE;
    if (like->channels != 1 && like->channels != 2 && like->channels != 4 && !planar(like))
        return CUDA_ERROR_INVALID_VALUE;
    if (like->flags & CUDA_ARRAY3D_SPARSE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!(like->flags & CUDA_ARRAY3D_CUBEMAP)) return CUDA_SUCCESS;
    const bool layered = like->flags & CUDA_ARRAY3D_LAYERED;
    const bool faces = layered ? like->depth && like->depth % CUBE_FACES == 0 : like->depth == CUBE_FACES;
    return like->width == like->height && faces ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static u64 halved(u64 side, u32 level) { return side ? at_least_1(side >> level) : 0; }

/* Layers and faces do not shrink with the level. */
static CUDA_ARRAY3D_DESCRIPTOR level_like(const CUDA_ARRAY3D_DESCRIPTOR *like, u32 level) {
    CUDA_ARRAY3D_DESCRIPTOR at = *like;
    at.width = halved(like->width, level);
    at.height = halved(like->height, level);
    if (!(like->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))) at.depth = halved(like->depth, level);
    return at;
}

static u32 most_levels(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    u64 side = like->width > like->height ? like->width : like->height;
    if (!(like->flags & CUDA_ARRAY3D_LAYERED) && like->depth > side) side = like->depth;
    u32 levels = 1;
    while (side >>= 1) levels++;
    return levels;
}

/* Of all levels, one after the other; 0 levels: a plain array. */
static u64 levels_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like, u32 levels) {
    u64 bytes = levels ? 0 : array_bytes(like);
    for (u32 level = 0; level < levels; level++) {
        const CUDA_ARRAY3D_DESCRIPTOR at = level_like(like, level);
        bytes += array_bytes(&at);
    }
    return bytes;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static struct cuda_array *all;

/* The array of a handle; NULL: no such handle. */
static struct cuda_array *array_of(const void *handle, bool mipmapped) {
    struct cuda_array *each = all;
    while (each && (each != handle || (each->levels > 0) != mipmapped)) each = each->next;
    return each;
}

static void array_free(struct cuda_array *array) {
    if (array->range) range_remove(array->range);
    if (array->address) {
        piece_give(array->piece);
        arena_give(array->address, array->bytes);
    }
    UNLINK(all, array, next);
    free(array);
}

static void array_gone(struct range *range) { array_free(range->owner); }

/* Those with memory were freed with their ranges. */
void arrays_context_gone(const struct cuda_context *context) {
    for (struct cuda_array *array = all, *next; array; array = next) {
        next = array->next;
        if (array->context == context) array_free(array);
    }
}

/* Deferred arrays take none. */
static CUresult memory_take(struct cuda_array *array) {
    if (array->descriptor.flags & CUDA_ARRAY3D_DEFERRED) return CUDA_SUCCESS;
    const u64 address = arena_take(array->bytes, 0);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = piece_take(array->device, SIM_ARRAY, array->bytes, &array->piece);
    if (result != CUDA_SUCCESS) {
        arena_give(address, array->bytes);
        return result;
    }
    array->address = address;
    const struct range like = {
        .start = address,
        .bytes = array->bytes,
        .kind = RANGE_ARRAY,
        .device = array->device,
        .context = array->context,
        .data = keeps_data(array->device, array->bytes) ? arena_data(address) : NULL,
        .owner = array,
        .gone = array_gone,
    };
    array->range = range_add(&like);
    return array->range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* 0 `levels`: a plain array. */
static CUresult array_new(struct cuda_context *context, const CUDA_ARRAY3D_DESCRIPTOR *like, u32 levels, void **made) {
    TRY(check(like));
    TRY(capture_forbids_unsafe());
    LOCKED;
    struct cuda_array *array = malloc(sizeof *array);
    if (!array) return CUDA_ERROR_OUT_OF_MEMORY;
    *array = (struct cuda_array){.device = context->device, .context = context, .descriptor = *like, .levels = levels};
    array->bytes = levels_bytes(like, levels);
    array->next = all;
    all = array;
    const CUresult result = memory_take(array);
    if (result == CUDA_SUCCESS)
        *made = array;
    else
        array_free(array);
    return result;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CALL(cuArray3DCreate_v2, CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *like) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!made || !like) return CUDA_ERROR_INVALID_VALUE;
    return array_new(context, like, 0, (void **)made);
}

CALL(cuArrayCreate_v2, CUarray *made, const CUDA_ARRAY_DESCRIPTOR *like) {
    if (!like) return driver_ready() ? driver_ready() : CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR same = {
        .width = like->width, .height = like->height, .format = like->format, .channels = like->channels};
    return cuArray3DCreate_v2(made, &same);
}

/* The number of levels is limited to the possible maximum. */
CALL(cuMipmappedArrayCreate, CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!made || !like || planar(like)) return CUDA_ERROR_INVALID_VALUE;
    const u32 most = most_levels(like);
    return array_new(context, like, levels < 1 ? 1 : levels > most ? most : levels, (void **)made);
}

static CUresult destroy(const void *handle, bool mipmapped) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    struct cuda_array *array = array_of(handle, mipmapped);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    array_free(array);
    return CUDA_SUCCESS;
}

CALL(cuArrayDestroy, CUarray array) { return destroy(array, false); }
CALL(cuMipmappedArrayDestroy, CUmipmappedArray mipmaps) { return destroy(mipmaps, true); }

CALL(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray handle) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    const struct cuda_array *array = array_of(handle, false);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
}

/* Documented to succeed only for deferred arrays. */
static CUresult requirements(const void *handle, bool mipmapped, CUdevice ordinal,
                             CUDA_ARRAY_MEMORY_REQUIREMENTS *answer) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    LOCKED;
    const struct cuda_array *array = array_of(handle, mipmapped);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!answer || !(array->descriptor.flags & CUDA_ARRAY3D_DEFERRED)) return CUDA_ERROR_INVALID_VALUE;
    *answer = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.bytes = array->bytes, .alignment = ARRAY_TILE};
    return CUDA_SUCCESS;
}

CALL(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUarray array, CUdevice ordinal) {
    return requirements(array, false, ordinal, answer);
}
CALL(cuMipmappedArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUmipmappedArray mipmaps,
     CUdevice ordinal) {
    return requirements(mipmaps, true, ordinal, answer);
}
