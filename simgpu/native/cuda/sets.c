/* Memsets: one value repeated, in rows. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

struct set {
    u64 address, pitch;
    u32 value, element_bytes;
    u64 width, height; /* elements, rows */
};

static u64 row_bytes(const struct set *set) { return set->width * set->element_bytes; }

static CUresult check(struct set *set) {
    u64 bytes, span;
    const u32 element = set->element_bytes;
    if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(set->width, element, &bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!bytes || !set->height) return CUDA_SUCCESS;
    if (set->height == 1) set->pitch = bytes;
    if (set->address % element || set->pitch % element || set->pitch < bytes) return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(set->pitch, set->height - 1, &span)) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    return ranges_cover(set->address, span + bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void fill(char *data, const struct set *set, size_t bytes) {
    if (set->element_bytes == 1) memset(data, (int)set->value, bytes);
    for (size_t n = 0; set->element_bytes > 1 && n < bytes; n += set->element_bytes)
        memcpy(data + n, &set->value, set->element_bytes);
}

/* Ranges begin and end at multiples of an element. */
static void fill_row(const struct set *set, u64 address) {
    for (u64 left = row_bytes(set); left;) {
        size_t length = 0;
        char *data = memory_data(address, &length);
        if (!length) return; /* freed since the memset was captured */
        if (length > left) length = left;
        if (data) fill(data, set, length);
        address += length;
        left -= length;
    }
}

static CUresult run(void *argument) {
    const struct set *set = argument;
    for (u64 row = 0; row < set->height; row++) fill_row(set, set->address + row * set->pitch);
    return CUDA_SUCCESS;
}

static u64 duration(const struct device *device, const struct set *set) {
    return transfer_ns(device, row_bytes(set) * set->height, false);
}

CUresult memory_set_work(struct cuda_context *context, const void *params, struct work *work) {
    const CUDA_MEMSET_NODE_PARAMS *like = params;
    struct set set = {like->target, like->pitch, like->value, like->element_bytes, like->width, like->height};
    TRY(check(&set));
    struct set *kept = malloc(sizeof *kept);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = set;
    *work = (struct work){.kind = NODE_MEMSET,
                          .duration_ns = duration(context->device, &set),
                          .run = run,
                          .drop = free,
                          .argument = kept};
    return CUDA_SUCCESS;
}

static bool on_host_side(const struct set *set) {
    LOCKED;
    const struct range *range = range_at(set->address);
    return range && range_on_host(range);
}

/* The host waits only for its own memory, as documented. */
static CUresult set_now(struct set set, bool own) {
    struct cuda_stream *stream;
    TRY(stream_of(NULL, own, &stream));
    TRY(check(&set));
    TRY(capture_forbids_unsafe());
    if (!set.width || !set.height) return CUDA_SUCCESS;
    TRY(stream_enqueue(stream, duration(stream_device(stream), &set), NULL));
    run(&set);
    return on_host_side(&set) ? stream_finish(stream) : CUDA_SUCCESS;
}

#define SET(bits, type)                                                                                                \
    CALL_TWICE(cuMemsetD##bits##_v2, _ptds,                                                                            \
               set_now((struct set){address, 0, value, sizeof(type), count, 1}, per_thread), CUdeviceptr address,      \
               type value, size_t count)

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
