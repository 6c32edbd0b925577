/* Freeing: immediately, after all of the process's work on the card; or in stream order. */
#include "heap.h"

#include <stdlib.h>

/* Reports that a stream has reached one of its frees. */
struct note {
    struct device *device;
    struct order *order;
    u64 number;
};

/* These actions run when a thread synchronizes, or finds by a query that it need not: that is when pools return what
 * exceeds their thresholds. */
static void note_done(void *argument) {
    LOCKED;
    const struct note *note = argument;
    if (note->order->done < note->number) note->order->done = note->number;
    order_drop(note->order);
    pools_settle(note->device);
    free(argument);
}

/* Locked: numbers the stream's next free. NULL: no memory on the host. */
static struct note *note_new(struct device *device, const struct cuda_stream *stream) {
    struct note *note = malloc(sizeof *note);
    struct order *order = note ? order_of(order_key(stream)) : NULL;
    if (!order) {
        free(note);
        return NULL;
    }
    order->references++;
    *note = (struct note){.device = device, .order = order, .number = ++order->last};
    return note;
}

/* Without an order it is like a synchronization: the program has waited. */
static void segment_free(struct range *range, const struct cuda_stream *stream, struct note **note) {
    struct device *device = range->device;
    struct segment *segment = range->owner;
    *note = stream ? note_new(device, stream) : NULL;
    range_remove(range);
    heap_give(segment, *note ? (*note)->order : NULL);
    if (!*note) pools_settle(device);
}

/* Locked. *note: to be run when the stream reaches this point; NULL: nothing. */
static CUresult range_free(u64 address, const struct cuda_stream *stream, struct note **note) {
    struct range *range = range_at(address);
    *note = NULL;
    if (!range || range->start != address) return CUDA_ERROR_INVALID_VALUE;
    switch (range->kind) {
    case RANGE_POOL: return segment_free(range, stream, note), CUDA_SUCCESS;
    case RANGE_GRAPH: return graph_memory_free(range);
    case RANGE_BLOCK:
    case RANGE_MANAGED:
    case RANGE_POOL_IPC: return range->gone(range), CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult memory_free(u64 address, struct cuda_stream *stream) {
    struct note *note;
    {
        LOCKED;
        TRY(range_free(address, stream, &note));
    }
    if (note && stream_after(stream, note_done, note) != CUDA_SUCCESS) note_done(note);
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Waits for all work of the process on the card, as the driver does before it unmaps. */
static CUresult finish_all(struct device *device) {
    if (!device || device->row < 0) return CUDA_SUCCESS;
    return device_wait(device, atomic_load(&device->line->row[device->row].published));
}

static bool freeable(const struct range *range, u64 address) {
    if (!range || range->start != address) return false;
    return range->kind <= RANGE_GRAPH || range->kind == RANGE_POOL_IPC;
}

static CUresult device_of_freeable(u64 address, struct device **device) {
    LOCKED;
    const struct range *range = range_at(address);
    if (!freeable(range, address)) return CUDA_ERROR_INVALID_VALUE;
    *device = range->device;
    return CUDA_SUCCESS;
}

CALL(cuMemFree_v2, CUdeviceptr address) {
    struct cuda_context *context;
    struct device *device;
    TRY(context_current(&context));
    if (!address) return CUDA_SUCCESS;
    TRY(capture_forbids_unsafe());
    TRY(device_of_freeable(address, &device));
    TRY(finish_all(device));
    return memory_free(address, NULL); /* if two threads free the same memory, one of them fails here */
}

static CUresult free_later(CUdeviceptr address, CUstream handle, bool own) {
    struct cuda_stream *stream;
    bool capturing;
    TRY(stream_of(handle, own, &stream));
    TRY(stream_begin(stream, &capturing));
    return capturing ? graph_memory_capture_free(stream, address) : memory_free(address, stream);
}

CALL_TWICE(cuMemFreeAsync, _ptsz, free_later(address, stream, per_thread), CUdeviceptr address, CUstream stream)
