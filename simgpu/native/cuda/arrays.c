/* Arrays: memory without an address that programs could use.
 *
 * The data lie row by row, not in tiles: only sizes are the hardware's. Sparse arrays are not supported; deferred ones
 * have a size that can be asked for, and no memory. */
#include "arrays.h"

#include <stdlib.h>

enum { CUBE_FACES = 6 };

struct cuda_mipmaps {
    struct cuda_array whole;      /* its memory: all levels, one after the other */
    u32 levels;
    struct cuda_mipmaps *next;
};

static struct cuda_array *arrays; /* those with a handle */

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Of one channel; 0: no such format here. */
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

/* The second plane of NV12 has half the rows, of as many bytes as the first one's. */
static u64 rows_of(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    const u64 rows = at_least_1(like->height);
    return planar(like) ? rows + (rows + 1) / 2 : rows;
}

static u64 pitch_of(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return like->width * channel_bytes(like->format) * (planar(like) ? 1 : like->channels);
}

u64 array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return round_up(pitch_of(like) * rows_of(like) * at_least_1(like->depth), ARRAY_TILE);
}

CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    enum { MOST = 1 << 17 }; /* greater than any side that hardware has, small enough for products */
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

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

struct cuda_array *array_valid(const struct cuda_array *array) {
    struct cuda_array *each = arrays;
    while (each && each != array) each = each->next;
    return each;
}

static struct cuda_array *array_add(const struct cuda_array *like) {
    struct cuda_array *array = malloc(sizeof *array);
    if (!array) return NULL;
    *array = *like;
    array->next = arrays;
    arrays = array;
    return array;
}

static void array_unlink(struct cuda_array *array) {
    struct cuda_array **link = &arrays;
    while (*link && *link != array) link = &(*link)->next;
    if (*link) *link = array->next;
}

/* The memory of an array that is filled in but for its place. */
CUresult array_memory_take(struct cuda_array *array) {
    if (array->descriptor.flags & CUDA_ARRAY3D_DEFERRED) return CUDA_SUCCESS;
    array->address = arena_take(array->bytes, 0);
    if (!array->address) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = piece_take(array->device, SIM_ARRAY, array->bytes, &array->piece);
    if (result != CUDA_SUCCESS) arena_give(array->address, array->bytes);
    return result;
}

void array_memory_give(const struct cuda_array *array) {
    if (array->range) range_remove(array->range);
    if (!array->address) return;
    piece_give(array->piece);
    arena_give(array->address, array->bytes);
}

CUresult array_range(struct cuda_array *array, struct cuda_array *owner) {
    if (!array->address) return CUDA_SUCCESS;
    const struct range like = {
        .start = array->address,
        .bytes = array->bytes,
        .kind = RANGE_ARRAY,
        .device = array->device,
        .context = array->context,
        .data = keeps_data(array->device, array->bytes) ? arena_data(array->address) : NULL,
        .owner = owner,
    };
    array->range = range_add(&like);
    return array->range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

struct cuda_array array_shape(struct cuda_context *context, const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return (struct cuda_array){
        .device = context->device,
        .context = context,
        .descriptor = *like,
        .bytes = array_bytes(like),
        .pitch = pitch_of(like),
        .rows = rows_of(like),
    };
}

static CUresult array_new(struct cuda_context *context, const CUDA_ARRAY3D_DESCRIPTOR *like, CUarray *made) {
    LOCKED;
    struct cuda_array fresh = array_shape(context, like);
    TRY(array_memory_take(&fresh));
    struct cuda_array *array = array_add(&fresh);
    if (array && array_range(array, array) == CUDA_SUCCESS) {
        *made = array;
        return CUDA_SUCCESS;
    }
    if (array) array_unlink(array);
    free(array);
    array_memory_give(&fresh);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void array_parts_free(struct cuda_array *parts) {
    for (struct cuda_array *part, *next = parts; (part = next);) {
        next = part->parts;
        array_unlink(part);
        free(part);
    }
}

void array_free(struct cuda_array *array) {
    if (array->mipmaps) return mipmaps_free(array->mipmaps);
    array_parts_free(array->parts);
    array_memory_give(array);
    array_unlink(array);
    free(array);
}

/* Those that have memory went with their ranges. */
void arrays_context_gone(const struct cuda_context *context) {
    for (struct cuda_array *array = arrays, *next; array; array = next) {
        next = array->next;
        if (array->context != context || array->part) continue;
        array_free(array);
        next = arrays; /* its parts went with it */
    }
    mipmaps_context_gone(context);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CALL(cuArray3DCreate_v2, CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *like) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!made || !like) return CUDA_ERROR_INVALID_VALUE;
    TRY(array_check(like));
    TRY(capture_forbids_unsafe());
    return array_new(context, like, made);
}

CALL(cuArrayCreate_v2, CUarray *made, const CUDA_ARRAY_DESCRIPTOR *like) {
    if (!like) return driver_ready() ? driver_ready() : CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR same = {
        .width = like->width, .height = like->height, .format = like->format, .channels = like->channels};
    return cuArray3DCreate_v2(made, &same);
}

CALL(cuArrayDestroy, CUarray array) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    if (!array_valid(array) || array->part) return CUDA_ERROR_INVALID_HANDLE;
    array_free(array);
    return CUDA_SUCCESS;
}

CALL(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    if (!array_valid(array)) return CUDA_ERROR_INVALID_HANDLE;
    if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
}

/* Documented to answer only for deferred arrays. */
CUresult array_requirements(const struct cuda_array *array, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer) {
    if (!answer || !(array->descriptor.flags & CUDA_ARRAY3D_DEFERRED)) return CUDA_ERROR_INVALID_VALUE;
    *answer = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.bytes = array->bytes, .alignment = ARRAY_TILE};
    return CUDA_SUCCESS;
}

CALL(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUarray array, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    LOCKED;
    return array_valid(array) ? array_requirements(array, answer) : CUDA_ERROR_INVALID_HANDLE;
}
