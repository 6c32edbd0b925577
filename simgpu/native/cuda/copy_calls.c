/* cuMemcpy*: each name as the copy that it means, with its form for the thread's own default stream. */
#include "copies.h"

static struct place place_of(u32 type, const void *host, u64 device, struct array *array) {
    const bool on_host_side = type == CU_MEMORYTYPE_HOST;
    return (struct place){.type = type, .address = on_host_side ? (u64)host : device, .array = array};
}

struct copy copy_of_3d(const CUDA_MEMCPY3D *like) {
    struct copy copy = {
        .source = place_of(like->source_type, like->source_host, like->source_device, like->source_array),
        .target = place_of(like->target_type, like->target_host, like->target_device, like->target_array),
        .width = like->width,
        .height = like->height,
        .depth = like->depth,
    };
    copy.source.x = like->source_x, copy.source.y = like->source_y, copy.source.z = like->source_z;
    copy.target.x = like->target_x, copy.target.y = like->target_y, copy.target.z = like->target_z;
    copy.source.pitch = like->source_pitch, copy.source.rows = like->source_height;
    copy.target.pitch = like->target_pitch, copy.target.rows = like->target_height;
    return copy;
}

struct copy copy_of_2d(const CUDA_MEMCPY2D *like) {
    struct copy copy = {
        .source = place_of(like->source_type, like->source_host, like->source_device, like->source_array),
        .target = place_of(like->target_type, like->target_host, like->target_device, like->target_array),
        .width = like->width,
        .height = like->height,
        .depth = 1,
    };
    copy.source.x = like->source_x, copy.source.y = like->source_y, copy.source.pitch = like->source_pitch;
    copy.target.x = like->target_x, copy.target.y = like->target_y, copy.target.pitch = like->target_pitch;
    return copy;
}

/* ---- copies that return when they are done ----------------------------------------------------------------------- */

#define NOW(name, copy, ...)                                                                                           \
    CALL(name, __VA_ARGS__) { return copy_now(copy, false); }                                                          \
    CALL(name##_ptds, __VA_ARGS__) { return copy_now(copy, true); }

NOW(cuMemcpy, linear(anywhere(to), anywhere(from), bytes), CUdeviceptr to, CUdeviceptr from, size_t bytes)
NOW(cuMemcpyHtoD_v2, linear(on_device(to), on_host(from), bytes), CUdeviceptr to, const void *from, size_t bytes)
NOW(cuMemcpyDtoH_v2, linear(on_host(to), on_device(from), bytes), void *to, CUdeviceptr from, size_t bytes)
NOW(cuMemcpyDtoD_v2, linear(on_device(to), on_device(from), bytes), CUdeviceptr to, CUdeviceptr from, size_t bytes)
NOW(cuMemcpyDtoA_v2, linear(in_array(to, x), on_device(from), bytes), CUarray to, size_t x, CUdeviceptr from,
    size_t bytes)
NOW(cuMemcpyAtoD_v2, linear(on_device(to), in_array(from, x), bytes), CUdeviceptr to, CUarray from, size_t x,
    size_t bytes)
NOW(cuMemcpyHtoA_v2, linear(in_array(to, x), on_host(from), bytes), CUarray to, size_t x, const void *from,
    size_t bytes)
NOW(cuMemcpyAtoH_v2, linear(on_host(to), in_array(from, x), bytes), void *to, CUarray from, size_t x, size_t bytes)
NOW(cuMemcpyAtoA_v2, linear(in_array(to, to_x), in_array(from, from_x), bytes), CUarray to, size_t to_x, CUarray from,
    size_t from_x, size_t bytes)

/* With unified addresses the contexts say nothing that the pointers don't. */
#define UNUSED __attribute__((unused))
NOW(cuMemcpyPeer, linear(on_device(to), on_device(from), bytes), CUdeviceptr to, UNUSED CUcontext to_context,
    CUdeviceptr from, UNUSED CUcontext from_context, size_t bytes)

#define NOW_BOX(name, of, type)                                                                                        \
    CALL(name, const type *like) { return like ? copy_now(of(like), false) : CUDA_ERROR_INVALID_VALUE; }               \
    CALL(name##_ptds, const type *like) { return like ? copy_now(of(like), true) : CUDA_ERROR_INVALID_VALUE; }

NOW_BOX(cuMemcpy2D_v2, copy_of_2d, CUDA_MEMCPY2D)
NOW_BOX(cuMemcpy2DUnaligned_v2, copy_of_2d, CUDA_MEMCPY2D)
NOW_BOX(cuMemcpy3D_v2, copy_of_3d, CUDA_MEMCPY3D)
NOW_BOX(cuMemcpy3DPeer, copy_of_3d, CUDA_MEMCPY3D_PEER)

/* ---- copies in a stream ------------------------------------------------------------------------------------------ */

#define LATER(name, copy, ...)                                                                                         \
    CALL(name, __VA_ARGS__, CUstream stream) { return copy_later(copy, stream, false); }                               \
    CALL(name##_ptsz, __VA_ARGS__, CUstream stream) { return copy_later(copy, stream, true); }

LATER(cuMemcpyAsync, linear(anywhere(to), anywhere(from), bytes), CUdeviceptr to, CUdeviceptr from, size_t bytes)
LATER(cuMemcpyHtoDAsync_v2, linear(on_device(to), on_host(from), bytes), CUdeviceptr to, const void *from, size_t bytes)
LATER(cuMemcpyDtoHAsync_v2, linear(on_host(to), on_device(from), bytes), void *to, CUdeviceptr from, size_t bytes)
LATER(cuMemcpyDtoDAsync_v2, linear(on_device(to), on_device(from), bytes), CUdeviceptr to, CUdeviceptr from,
      size_t bytes)
LATER(cuMemcpyHtoAAsync_v2, linear(in_array(to, x), on_host(from), bytes), CUarray to, size_t x, const void *from,
      size_t bytes)
LATER(cuMemcpyAtoHAsync_v2, linear(on_host(to), in_array(from, x), bytes), void *to, CUarray from, size_t x,
      size_t bytes)
LATER(cuMemcpyPeerAsync, linear(on_device(to), on_device(from), bytes), CUdeviceptr to, UNUSED CUcontext to_context,
      CUdeviceptr from, UNUSED CUcontext from_context, size_t bytes)

#define LATER_BOX(name, of, type)                                                                                      \
    CALL(name, const type *like, CUstream stream) {                                                                    \
        return like ? copy_later(of(like), stream, false) : CUDA_ERROR_INVALID_VALUE;                                  \
    }                                                                                                                  \
    CALL(name##_ptsz, const type *like, CUstream stream) {                                                             \
        return like ? copy_later(of(like), stream, true) : CUDA_ERROR_INVALID_VALUE;                                   \
    }

LATER_BOX(cuMemcpy2DAsync_v2, copy_of_2d, CUDA_MEMCPY2D)
LATER_BOX(cuMemcpy3DAsync_v2, copy_of_3d, CUDA_MEMCPY3D)
LATER_BOX(cuMemcpy3DPeerAsync, copy_of_3d, CUDA_MEMCPY3D_PEER)
