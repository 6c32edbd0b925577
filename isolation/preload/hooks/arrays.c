/* Arrays and mipmapped arrays. Only the driver knows how many bytes they take; it tells the size of an identical array
 * without memory. */
#include "hooks.h"

REAL_CALL(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUarray array, CUdevice device);
REAL_CALL(cuMipmappedArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUmipmappedArray mipmaps,
          CUdevice device);
REAL_CALL(cuCtxGetDevice, CUdevice *device);
REAL_CALL(cuArray3DCreate_v2, CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *like);
REAL_CALL(cuArrayCreate_v2, CUarray *array, const CUDA_ARRAY_DESCRIPTOR *like);

/* Drivers before 11.6 have no arrays without memory. Assumes 4 bytes per channel, whole blocks, and all levels. */
static uint64_t guess(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    enum { CHANNEL_BYTES = 4, LEVELS = 2 };
    const uint64_t sides[] = {like->width, like->height, like->depth, like->channels};
    uint64_t bytes = CHANNEL_BYTES * LEVELS;
    for (int n = 0; n < 4; n++)
        if (sides[n] && __builtin_mul_overflow(bytes, sides[n], &bytes)) return UINT64_MAX / 2;
    return bytes > UINT64_MAX / 2 ? UINT64_MAX / 2 : round_up(bytes, BLOCK_BYTES);
}

static bool has_memory(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return !(like->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED));
}

static CUDA_ARRAY3D_DESCRIPTOR deferred(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    CUDA_ARRAY3D_DESCRIPTOR twin = *like;
    twin.flags |= CUDA_ARRAY3D_DEFERRED;
    return twin;
}

static CUDA_ARRAY3D_DESCRIPTOR in_three(const CUDA_ARRAY_DESCRIPTOR *like) {
    return (CUDA_ARRAY3D_DESCRIPTOR){
        .width = like->width, .height = like->height, .format = like->format, .channels = like->channels};
}

static CUresult note(unsigned card, CUcontext context, uint64_t handle, uint64_t bytes) {
    const struct entry what = {.key = handle, .bytes = bytes, .of = (uint64_t)context, .card = (uint16_t)card};
    uint64_t charged;
    return held_note(HELD_ARRAYS, &what, &charged) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

HOOK_CALL(cuArrayDestroy, CUarray array) {
    struct entry what;
    if (!held_take(HELD_ARRAYS, (uint64_t)array, &what)) return DRIVER(REAL(cuArrayDestroy)(array));
    const CUresult result = DRIVER(REAL(cuArrayDestroy)(array));
    held_end(HELD_ARRAYS, &what, result == CUDA_SUCCESS, true);
    return result;
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like) {
    const CUDA_ARRAY3D_DESCRIPTOR twin = deferred(like);
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUdevice device;
    CUarray array;
    if (DRIVER(REAL(cuCtxGetDevice)(&device)) != CUDA_SUCCESS) return guess(like);
    if (DRIVER(REAL(cuArray3DCreate_v2)(&array, &twin)) != CUDA_SUCCESS) return guess(like);
    const CUresult result = DRIVER(REAL(cuArrayGetMemoryRequirements)(&needs, array, device));
    DRIVER(REAL(cuArrayDestroy)(array));
    return result == CUDA_SUCCESS ? needs.bytes : guess(like);
}

static CUresult make_array(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *like, const CUDA_ARRAY_DESCRIPTOR *flat) {
    return flat ? DRIVER(REAL(cuArrayCreate_v2)(made, flat)) : DRIVER(REAL(cuArray3DCreate_v2)(made, like));
}

/* `flat`: the program's descriptor if it used the two-dimensional form. */
static CUresult array_take(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *like, const CUDA_ARRAY_DESCRIPTOR *flat) {
    unsigned card;
    CUcontext context;
    CUarray made;
    if (!array || !has_memory(like) || !current_card(&card, &context)) return make_array(array, like, flat);
    const uint64_t bytes = array_bytes(like);
    TRY(account_begin(card, bytes));
    CUresult result = make_array(&made, like, flat);
    if (result == CUDA_SUCCESS) {
        result = note(card, context, (uint64_t)made, bytes);
        if (result != CUDA_SUCCESS) DRIVER(REAL(cuArrayDestroy)(made));
    }
    account_end(card, result == CUDA_SUCCESS ? 0 : bytes);
    if (result == CUDA_SUCCESS) *array = made;
    return result;
}

HOOK_CALL(cuArray3DCreate_v2, CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *like) {
    return like ? array_take(array, like, NULL) : DRIVER(REAL(cuArray3DCreate_v2)(array, like));
}

HOOK_CALL(cuArrayCreate_v2, CUarray *array, const CUDA_ARRAY_DESCRIPTOR *like) {
    if (!like) return DRIVER(REAL(cuArrayCreate_v2)(array, like));
    const CUDA_ARRAY3D_DESCRIPTOR same = in_three(like);
    return array_take(array, &same, like);
}

/* ---- mipmapped arrays ------------------------------------------------------------------------------------------- */

HOOK_CALL(cuMipmappedArrayDestroy, CUmipmappedArray mipmaps) {
    struct entry what;
    if (!held_take(HELD_ARRAYS, (uint64_t)mipmaps, &what)) return DRIVER(REAL(cuMipmappedArrayDestroy)(mipmaps));
    const CUresult result = DRIVER(REAL(cuMipmappedArrayDestroy)(mipmaps));
    held_end(HELD_ARRAYS, &what, result == CUDA_SUCCESS, true);
    return result;
}

REAL_CALL(cuMipmappedArrayCreate, CUmipmappedArray *mipmaps, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels);

static uint64_t mipmaps_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels) {
    const CUDA_ARRAY3D_DESCRIPTOR twin = deferred(like);
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUdevice device;
    CUmipmappedArray mipmaps;
    if (DRIVER(REAL(cuCtxGetDevice)(&device)) != CUDA_SUCCESS) return guess(like);
    if (DRIVER(REAL(cuMipmappedArrayCreate)(&mipmaps, &twin, levels)) != CUDA_SUCCESS) return guess(like);
    const CUresult result = DRIVER(REAL(cuMipmappedArrayGetMemoryRequirements)(&needs, mipmaps, device));
    DRIVER(REAL(cuMipmappedArrayDestroy)(mipmaps));
    return result == CUDA_SUCCESS ? needs.bytes : guess(like);
}

HOOK_CALL(cuMipmappedArrayCreate, CUmipmappedArray *mipmaps, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels) {
    unsigned card;
    CUcontext context;
    CUmipmappedArray made;
    if (!mipmaps || !like || !has_memory(like) || !current_card(&card, &context))
        return DRIVER(REAL(cuMipmappedArrayCreate)(mipmaps, like, levels));
    const uint64_t bytes = mipmaps_bytes(like, levels);
    TRY(account_begin(card, bytes));
    CUresult result = DRIVER(REAL(cuMipmappedArrayCreate)(&made, like, levels));
    if (result == CUDA_SUCCESS) {
        result = note(card, context, (uint64_t)made, bytes);
        if (result != CUDA_SUCCESS) DRIVER(REAL(cuMipmappedArrayDestroy)(made));
    }
    account_end(card, result == CUDA_SUCCESS ? 0 : bytes);
    if (result == CUDA_SUCCESS) *mipmaps = made;
    return result;
}
