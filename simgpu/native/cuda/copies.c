/* Copies: where the bytes are, how long the copy takes, and moving the bytes that have data.
 *
 * Data move when the copy is issued (or its graph launched), while time passes as if the card had moved them. A program
 * that waits before it reads cannot tell the difference. Memory without data reads as zeros and ignores writes.
 */
#include "memory.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OVERHEAD_NS 2000
#define PAGE 4096
#define LINK_FROM (8 * SIM_MIB) /* a thread waits for each smaller copy, so for those the link is not modelled */

struct copy {
    u64 target, source, bytes;
};

/* Where a copy's source or destination is. */
enum side { ON_HOST, ON_DEVICE };

/* ---- time -------------------------------------------------------------------------------------------------------- */

u64 transfer_ns(const struct device *device, u64 bytes, bool bus) {
    const struct sim_model *model = &device->about->model;
    const u64 rate = bus ? model->bus_rate : model->memory_rate;
    if (!rate) return OVERHEAD_NS;
    return OVERHEAD_NS + (u64)((unsigned __int128)bytes * SIM_NS_PER_S / rate);
}

/* Locked: whether the bytes are accessed over the bus. */
static bool beyond_bus(u64 address) {
    const struct range *range = range_at(address);
    return !range || range_on_host(range);
}

static bool on_bus(const struct copy *copy) {
    LOCKED;
    return beyond_bus(copy->source) || beyond_bus(copy->target);
}

static u64 duration(const struct device *device, const struct copy *copy) {
    return transfer_ns(device, copy->bytes, on_bus(copy));
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Locked: the bytes must be in accessible memory; the program's own memory is not checked. */
static CUresult check_side(u64 address, u64 bytes, enum side side) {
    u64 end;
    if (__builtin_add_overflow(address, bytes, &end)) return CUDA_ERROR_INVALID_VALUE;
    if (side == ON_HOST && !arena_has(address) && !range_at(address))
        return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return ranges_cover(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(const struct copy *copy, enum side to, enum side from) {
    if (!copy->bytes) return CUDA_SUCCESS;
    LOCKED;
    TRY(check_side(copy->source, copy->bytes, from));
    return check_side(copy->target, copy->bytes, to);
}

/* ---- moving data ------------------------------------------------------------------------------------------------- */

/* The data at a checked address: *length bytes at the returned pointer or, if NULL, as many without data. */
static char *reach(u64 address, size_t *length) {
    *length = 0;
    char *data = memory_data(address, length);
    if (!*length && !arena_has(address)) {
        *length = SIZE_MAX;
        return (char *)address;
    }
    return data;
}

/* Discards pinned pages of the program, which then read as zeros and take no memory: a large card has no data, and
 * copies of its content on the host need none either. */
static void zero(char *to, size_t length) {
    KEEP_ERRNO;
    const bool is_large = length >= LINK_FROM && (u64)to % PAGE == 0 && length % PAGE == 0;
    pthread_mutex_lock(&memory_lock);
    const struct range *range = is_large ? range_at((u64)to) : NULL;
    const bool is_pinned = range && range_on_host(range);
    pthread_mutex_unlock(&memory_lock);
    if (!is_pinned || madvise(to, length, MADV_DONTNEED) != 0) memset(to, 0, length);
}

static CUresult move(void *argument) {
    struct copy left = *(const struct copy *)argument;
    while (left.bytes) {
        size_t here, there;
        char *to = reach(left.target, &here);
        const char *from = reach(left.source, &there);
        size_t length = here < there ? here : there;
        if (!length) break; /* freed since the copy was captured */
        if (length > left.bytes) length = left.bytes;
        if (to && from)
            memmove(to, from, length);
        else if (to)
            zero(to, length);
        left.target += length, left.source += length, left.bytes -= length;
    }
    return CUDA_SUCCESS;
}

/* ---- issuing ----------------------------------------------------------------------------------------------------- */

static CUresult capture(const struct copy *copy, struct cuda_stream *stream) {
    struct copy *kept = malloc(sizeof *kept);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *copy;
    const struct work work = {
        .kind = NODE_MEMCPY,
        .duration_ns = duration(stream_device(stream), copy),
        .run = move,
        .drop = free,
        .argument = kept,
    };
    return capture_add(stream, &work);
}

/* Large copies use the link; small ones, and those within the card, use the card's own time. */
static CUresult issue(struct copy *copy, struct cuda_stream *stream) {
    const u64 takes_ns = duration(stream_device(stream), copy);
    if (copy->bytes >= LINK_FROM && on_bus(copy))
        TRY(stream_link(stream, arena_has(copy->target) ? SIM_TO_CARD : SIM_TO_HOST, takes_ns));
    else
        TRY(stream_enqueue(stream, takes_ns, NULL));
    return move(copy);
}

static CUresult copy_later(struct copy copy, enum side to, enum side from, CUstream handle, bool own) {
    struct cuda_stream *stream;
    bool capturing;
    TRY(stream_of(handle, own, &stream));
    TRY(check(&copy, to, from));
    TRY(stream_begin(stream, &capturing));
    if (capturing) return capture(&copy, stream);
    return copy.bytes ? issue(&copy, stream) : CUDA_SUCCESS;
}

/* For copies between memories of cards the host does not wait, as documented. */
static CUresult copy_now(struct copy copy, enum side to, enum side from, bool own) {
    struct cuda_stream *stream;
    TRY(stream_of(NULL, own, &stream));
    TRY(check(&copy, to, from));
    TRY(capture_forbids_unsafe());
    if (!copy.bytes) return CUDA_SUCCESS;
    TRY(issue(&copy, stream));
    return on_bus(&copy) ? stream_finish(stream) : CUDA_SUCCESS;
}

/* ---- driver functions, each with its per-thread default stream form ---------------------------------------------- */

#define COPY(name, to_type, to_side, from_type, from_side)                                                             \
    CALL_TWICE(name, _ptds, copy_now((struct copy){(u64)to, (u64)from, bytes}, to_side, from_side, per_thread),        \
               to_type to, from_type from, size_t bytes)
#define COPY_LATER(name, to_type, to_side, from_type, from_side)                                                       \
    CALL_TWICE(name, _ptsz,                                                                                            \
               copy_later((struct copy){(u64)to, (u64)from, bytes}, to_side, from_side, stream, per_thread),           \
               to_type to, from_type from, size_t bytes, CUstream stream)

COPY(cuMemcpyHtoD_v2, CUdeviceptr, ON_DEVICE, const void *, ON_HOST)
COPY(cuMemcpyDtoH_v2, void *, ON_HOST, CUdeviceptr, ON_DEVICE)
COPY(cuMemcpyDtoD_v2, CUdeviceptr, ON_DEVICE, CUdeviceptr, ON_DEVICE)
COPY_LATER(cuMemcpyHtoDAsync_v2, CUdeviceptr, ON_DEVICE, const void *, ON_HOST)
COPY_LATER(cuMemcpyDtoHAsync_v2, void *, ON_HOST, CUdeviceptr, ON_DEVICE)
