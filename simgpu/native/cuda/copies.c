/* Copies: where the bytes are, how long it takes, and moving those that are real.
 *
 * Data move when the copy is issued (or its graph launched), time passes as if the card had moved them. That is the
 * same to a program that waits before it looks. What has no data reads as zeros and swallows what is written. */
#include "copies.h"
#include "arrays.h"

#include <stdlib.h>
#include <string.h>

#define OVERHEAD_NS 2000

/* ---- time -------------------------------------------------------------------------------------------------------- */

u64 transfer_ns(const struct device *device, u64 bytes, bool bus) {
    const struct sim_model *model = &device->about->model;
    const u64 rate = bus ? model->bus_rate : model->memory_rate;
    if (!rate) return OVERHEAD_NS;
    return OVERHEAD_NS + (u64)((unsigned __int128)bytes * SIM_NS_PER_S / rate);
}

static u64 copy_bytes(const struct copy *copy) { return copy->width * copy->height * copy->depth; }

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Locked: says where in an array the box is, as if it were linear memory. */
static CUresult enter_array(struct place *place) {
    const struct array *array = array_valid(place->array);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!array->address) return CUDA_ERROR_INVALID_VALUE;
    place->address = array->address;
    place->pitch = array->pitch;
    place->rows = array->rows;
    return CUDA_SUCCESS;
}

/* Whether the box's beginning and end can be told in 64 bits, and where they are. */
static bool extent(const struct place *place, const struct copy *copy, u64 *first, u64 *last) {
    u64 row, slice;
    if (__builtin_mul_overflow(place->pitch, place->y, &row)) return false;
    if (__builtin_mul_overflow(place->pitch * place->rows, place->z, &slice)) return false;
    *first = place->address + place->x + row + slice;
    *last = *first + (copy->depth - 1) * place->pitch * place->rows + (copy->height - 1) * place->pitch + copy->width;
    return *last > *first;
}

/* Locked: the box lies in memory that may be used, on the host or not. */
static CUresult check_place(struct place *place, const struct copy *copy) {
    u64 first, last;
    if (place->type == CU_MEMORYTYPE_ARRAY) TRY(enter_array(place));
    if (!place->pitch) place->pitch = copy->width;
    if (!place->rows) place->rows = copy->height;
    if (copy->height > 1 && place->pitch < copy->width) return CUDA_ERROR_INVALID_VALUE;
    if (!extent(place, copy, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
    const bool host = place->type == CU_MEMORYTYPE_HOST || place->type == CU_MEMORYTYPE_UNIFIED;
    if (host && !arena_has(first) && !range_at(first)) return first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return ranges_cover(first, last - first) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Checks the copy and makes it independent of arrays' handles. */
static CUresult make_ready(struct copy *copy) {
    u64 all;
    if (__builtin_mul_overflow(copy->width, copy->height, &all) || __builtin_mul_overflow(all, copy->depth, &all))
        return CUDA_ERROR_INVALID_VALUE;
    if (!all) return CUDA_SUCCESS;
    LOCKED;
    TRY(check_place(&copy->source, copy));
    return check_place(&copy->target, copy);
}

/* Locked: whether the bytes come over the bus. */
static bool beyond_bus(const struct place *place) {
    const struct range *range = range_at(place->address);
    return !range || range_on_host(range);
}

static bool on_bus(const struct copy *copy) {
    LOCKED;
    return beyond_bus(&copy->source) || beyond_bus(&copy->target);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* What can be touched at an address that was checked: *length bytes at the answer, or, NULL, as many without data. */
static char *reach(u64 address, size_t *length) {
    *length = 0;
    char *data = memory_data(address, length);
    if (!*length && !arena_has(address)) {
        *length = SIZE_MAX;
        return (char *)address;
    }
    return data;
}

static void move_row(u64 target, u64 source, u64 bytes) {
    while (bytes) {
        size_t here, there;
        char *to = reach(target, &here);
        const char *from = reach(source, &there);
        size_t length = here < there ? here : there;
        if (!length) return; /* freed since the copy was written down */
        if (length > bytes) length = bytes;
        if (to && from)
            memmove(to, from, length);
        else if (to)
            memset(to, 0, length);
        target += length, source += length, bytes -= length;
    }
}

static u64 row_at(const struct place *place, u64 row, u64 slice) {
    return place->address + place->x + (place->y + row) * place->pitch +
           (place->z + slice) * place->pitch * place->rows;
}

static void move(const struct copy *copy) {
    if (!copy_bytes(copy)) return;
    for (u64 slice = 0; slice < copy->depth; slice++)
        for (u64 row = 0; row < copy->height; row++)
            move_row(row_at(&copy->target, row, slice), row_at(&copy->source, row, slice), copy->width);
}

/* ---- doing ------------------------------------------------------------------------------------------------------- */

static CUresult move_captured(void *argument) {
    move(argument);
    return CUDA_SUCCESS;
}

/* The copy must be ready. */
static CUresult copy_work(const struct device *device, const struct copy *copy, struct work *work) {
    struct copy *kept = malloc(sizeof *kept);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *copy;
    *work = (struct work){
        .kind = NODE_MEMCPY,
        .duration_ns = transfer_ns(device, copy_bytes(copy), on_bus(copy)),
        .run = move_captured,
        .drop = free,
        .argument = kept,
    };
    return CUDA_SUCCESS;
}

CUresult memory_copy_work(struct context *context, const void *copy, struct work *work) {
    struct copy ready = copy_of_3d(copy);
    TRY(make_ready(&ready));
    return copy_work(context->device, &ready, work);
}

static CUresult capture(const struct copy *copy, struct stream *stream) {
    struct work work;
    TRY(copy_work(stream_device(stream), copy, &work));
    return capture_add(stream, &work);
}

static CUresult issue(const struct copy *copy, struct stream *stream) {
    const struct device *device = stream_device(stream);
    TRY(stream_enqueue(stream, transfer_ns(device, copy_bytes(copy), on_bus(copy)), NULL));
    move(copy);
    return CUDA_SUCCESS;
}

CUresult copy_later(struct copy copy, CUstream handle, bool own) {
    struct stream *stream;
    bool capturing;
    TRY(stream_of(handle, own, &stream));
    TRY(make_ready(&copy));
    TRY(stream_begin(stream, &capturing));
    if (capturing) return capture(&copy, stream);
    return copy_bytes(&copy) ? issue(&copy, stream) : CUDA_SUCCESS;
}

/* Between memories of cards the host does not wait, as documented. */
CUresult copy_now(struct copy copy, bool own) {
    struct stream *stream;
    TRY(stream_of(NULL, own, &stream));
    TRY(make_ready(&copy));
    TRY(capture_forbids_unsafe());
    if (!copy_bytes(&copy)) return CUDA_SUCCESS;
    TRY(issue(&copy, stream));
    return on_bus(&copy) ? stream_finish(stream) : CUDA_SUCCESS;
}
