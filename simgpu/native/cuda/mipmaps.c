/* Mipmapped arrays: all levels in one piece, one after the other, and each level an array that is part of it. */
#include "arrays.h"

#include <stdlib.h>

struct cuda_mipmaps {
    struct cuda_array whole;
    u32 levels;
    struct cuda_mipmaps *next;
};

static struct cuda_mipmaps *all;

/* ---- levels ------------------------------------------------------------------------------------------------------ */

static u64 halved(u64 side, u32 level) { return side ? at_least_1(side >> level) : 0; }

/* Layers and faces are as many on every level. */
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

static u64 levels_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like, u32 levels) {
    u64 bytes = 0;
    for (u32 level = 0; level < levels; level++) {
        const CUDA_ARRAY3D_DESCRIPTOR at = level_like(like, level);
        bytes += array_bytes(&at);
    }
    return bytes;
}

/* ---- arrays of levels -------------------------------------------------------------------------------------------- */

bool mipmaps_valid(const struct cuda_mipmaps *mipmaps) {
    const struct cuda_mipmaps *each = all;
    while (each && each != mipmaps) each = each->next;
    return each;
}

static CUresult mipmaps_new(struct cuda_context *context, const CUDA_ARRAY3D_DESCRIPTOR *like, u32 levels,
                            CUmipmappedArray *made) {
    LOCKED;
    struct cuda_mipmaps *mipmaps = malloc(sizeof *mipmaps);
    if (!mipmaps) return CUDA_ERROR_OUT_OF_MEMORY;
    *mipmaps = (struct cuda_mipmaps){.whole = array_shape(context, like), .levels = levels};
    mipmaps->whole.bytes = levels_bytes(like, levels);
    mipmaps->whole.mipmaps = mipmaps;
    CUresult result = array_memory_take(&mipmaps->whole);
    if (result == CUDA_SUCCESS && array_range(&mipmaps->whole, &mipmaps->whole) != CUDA_SUCCESS) {
        array_memory_give(&mipmaps->whole);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        free(mipmaps);
        return result;
    }
    mipmaps->next = all;
    *made = all = mipmaps;
    return CUDA_SUCCESS;
}

void mipmaps_free(struct cuda_mipmaps *mipmaps) {
    struct cuda_mipmaps **link = &all;
    while (*link != mipmaps) link = &(*link)->next;
    *link = mipmaps->next;
    array_parts_free(mipmaps->whole.parts);
    array_memory_give(&mipmaps->whole);
    free(mipmaps);
}

void mipmaps_context_gone(const struct cuda_context *context) {
    for (struct cuda_mipmaps *mipmaps = all, *next; mipmaps; mipmaps = next) {
        next = mipmaps->next;
        if (mipmaps->whole.context == context) mipmaps_free(mipmaps);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CALL(cuMipmappedArrayCreate, CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!made || !like || planar(like)) return CUDA_ERROR_INVALID_VALUE;
    TRY(array_check(like));
    TRY(capture_forbids_unsafe());
    const u32 most = most_levels(like);
    return mipmaps_new(context, like, levels < 1 ? 1 : levels > most ? most : levels, made);
}

CALL(cuMipmappedArrayDestroy, CUmipmappedArray mipmaps) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    if (!mipmaps_valid(mipmaps)) return CUDA_ERROR_INVALID_HANDLE;
    mipmaps_free(mipmaps);
    return CUDA_SUCCESS;
}

CALL(cuMipmappedArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUmipmappedArray mipmaps,
     CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    LOCKED;
    return mipmaps_valid(mipmaps) ? array_requirements(&mipmaps->whole, answer) : CUDA_ERROR_INVALID_HANDLE;
}
