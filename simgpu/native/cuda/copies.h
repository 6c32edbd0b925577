/* Copies, apart from how programs spell them: what copies.c does for copy_calls.c. */
#pragma once

#include "memory.h"

/* One side of a copy: a box of rows. */
struct place {
    u32 type;            /* CU_MEMORYTYPE_… */
    u64 address;         /* of the host or the device; of an array once the copy is made ready */
    struct array *array;
    u64 x, y, z;         /* where the box begins: bytes, rows, slices */
    u64 pitch, rows;     /* of a row, and in a slice; 0: as much as is copied */
};

struct copy {
    struct place source, target;
    u64 width, height, depth; /* bytes, rows, slices */
};

static inline struct place on_host(const void *address) {
    return (struct place){.type = CU_MEMORYTYPE_HOST, .address = (u64)address};
}
static inline struct place on_device(u64 address) {
    return (struct place){.type = CU_MEMORYTYPE_DEVICE, .address = address};
}
static inline struct place anywhere(u64 address) {
    return (struct place){.type = CU_MEMORYTYPE_UNIFIED, .address = address};
}
static inline struct place in_array(struct array *array, u64 x) {
    return (struct place){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = x};
}

static inline struct copy linear(struct place target, struct place source, u64 bytes) {
    return (struct copy){source, target, bytes, 1, 1};
}

struct copy copy_of_2d(const CUDA_MEMCPY2D *like);
struct copy copy_of_3d(const CUDA_MEMCPY3D *like);

/* In the current context's default stream; returns when the host must have waited. */
CUresult copy_now(struct copy copy, bool own);

/* In a stream, which may be capturing. */
CUresult copy_later(struct copy copy, CUstream stream, bool own);
