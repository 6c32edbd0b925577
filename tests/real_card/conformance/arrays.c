/* Arrays: their size on the card, and which calls report it. */
#include "conformance.h"

static CUDA_ARRAY3D_DESCRIPTOR plain_array(void) {
    return (CUDA_ARRAY3D_DESCRIPTOR){.width = 1024, .height = 1024, .format = CU_AD_FORMAT_FLOAT, .channels = 4};
}

/* The result of cuArrayGetMemoryRequirements. */
static void tell_requirements(const char *fact, CUDA_ARRAY3D_DESCRIPTOR like, CUdevice device) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS told = {0};
    CUarray array;
    NEED(cuArray3DCreate_v2, &array, &like);
    const CUresult code = CU(cuArrayGetMemoryRequirements, &told, array, device);
    if (code)
        tell_cuda(fact, code);
    else
        tell(fact, "%zu at multiples of %zu", told.bytes, told.alignment);
    NEED(cuArrayDestroy, array);
}

/* The documentation allows the call only for deferred arrays. */
CASE(arrays, requirements) {
    const CUdevice device = open_card();
    CUDA_ARRAY3D_DESCRIPTOR like = plain_array();
    tell_requirements("plain", like, device);
    like.flags = CUDA_ARRAY3D_DEFERRED;
    tell_requirements("deferred", like, device);
    like.width = 100, like.height = 100, like.format = CU_AD_FORMAT_UNSIGNED_INT8, like.channels = 1;
    tell_requirements("deferred_small", like, device);
}

CASE(arrays, costs) {
    CUarray array, deferred;
    open_card();
    CUDA_ARRAY3D_DESCRIPTOR like = plain_array();
    size_t before = free_bytes();
    NEED(cuArray3DCreate_v2, &array, &like);
    tell_number("of_16_mib", before - free_bytes());
    NEED(cuArrayDestroy, array);
    tell_number("after_destroy", before - free_bytes());
    like.flags = CUDA_ARRAY3D_DEFERRED;
    NEED(cuArray3DCreate_v2, &deferred, &like);
    tell_number("of_deferred", before - free_bytes());
    like = plain_array();
    like.width = like.height = 16;
    before = free_bytes();
    NEED(cuArray3DCreate_v2, &array, &like);
    tell_number("of_4_kib", before - free_bytes());
}

static void tell_create(const char *fact, CUDA_ARRAY3D_DESCRIPTOR like) {
    CUarray array;
    TELL(fact, cuArray3DCreate_v2, &array, &like);
}

CASE(arrays, create) {
    open_card();
    CUDA_ARRAY3D_DESCRIPTOR like = plain_array();
    tell_create("plain", like);
    like.channels = 3;
    tell_create("three_channels", like);
    like.channels = 0;
    tell_create("no_channels", like);
    like = plain_array(), like.width = 0;
    tell_create("no_width", like);
    like = plain_array(), like.format = 77;
    tell_create("unknown_format", like);
    like = plain_array(), like.height = 0;
    tell_create("one_dimension", like);
    like = plain_array(), like.depth = 6, like.flags = CUDA_ARRAY3D_CUBEMAP;
    tell_create("cube", like);
    like.depth = 5;
    tell_create("cube_of_5", like);
    like = plain_array(), like.width = 1 << 20;
    tell_create("too_wide", like);
    TELL("no_room", cuArray3DCreate_v2, NULL, &like);
}

CASE(arrays, describe) {
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR told = {0};
    const CUDA_ARRAY_DESCRIPTOR like = {.width = 64, .height = 32, .format = CU_AD_FORMAT_HALF, .channels = 2};
    open_card();
    NEED(cuArrayCreate_v2, &array, &like);
    NEED(cuArray3DGetDescriptor_v2, &told, array);
    tell("as_made", "%zu x %zu x %zu, format %u, channels %u, flags %u", told.width, told.height, told.depth,
         told.format, told.channels, told.flags);
}

/* A real driver may crash here. */
CASE(arrays, void_handle) {
    CUarray array;
    const CUDA_ARRAY3D_DESCRIPTOR like = plain_array();
    open_card();
    NEED(cuArray3DCreate_v2, &array, &like);
    NEED(cuArrayDestroy, array);
    TELL("null", cuArrayDestroy, NULL);
    TELL("destroyed", cuArrayDestroy, array);
}
