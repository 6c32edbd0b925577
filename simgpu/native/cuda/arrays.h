/* Arrays, as copies, textures and mipmapped arrays see them. Everything here is locked. */
#pragma once

#include "memory.h"

struct cuda_array {
    struct device *device;
    struct cuda_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    u64 piece;               /* 0: has none of its own */
    u64 address;             /* in the arena: where its data are, row by row without gaps */
    u64 bytes;
    u64 pitch, rows;         /* of a row, and in a slice */
    struct range *range;     /* NULL: part, or deferred */
    bool part;               /* of another one, beginning at its byte `first` */
    u64 first;
    struct cuda_array *parts;     /* planes or levels that programs asked for */
    struct cuda_mipmaps *mipmaps; /* part of them */
    struct cuda_array *next;
};

static inline u64 at_least_1(u64 n) { return n ? n : 1; }

static inline bool planar(const CUDA_ARRAY3D_DESCRIPTOR *like) { return like->format == CU_AD_FORMAT_NV12; }

/* What an array like this takes, and whether there can be one. */
u64 array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *like);
CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *like);

/* One that is filled in but for its memory. */
struct cuda_array array_shape(struct cuda_context *context, const CUDA_ARRAY3D_DESCRIPTOR *like);

/* Its piece and address, unless it is deferred; then the range, whose owner has it. */
CUresult array_memory_take(struct cuda_array *array);
CUresult array_range(struct cuda_array *array, struct cuda_array *owner);
void array_memory_give(const struct cuda_array *array);

/* An array that shows what of `whole` begins at `first`: made once for each place, gone with all of them. */
void array_parts_free(struct cuda_array *parts);

CUresult array_requirements(const struct cuda_array *array, CUDA_ARRAY_MEMORY_REQUIREMENTS *answer);

/* NULL: no such handle. */
struct cuda_array *array_valid(const struct cuda_array *array);
bool mipmaps_valid(const struct cuda_mipmaps *mipmaps);
void mipmaps_free(struct cuda_mipmaps *mipmaps);
void mipmaps_context_gone(const struct cuda_context *context);
