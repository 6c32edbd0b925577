/* Order and time of work: one number per stream, the local time at which all of its work ends. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

enum {
    FREED_AT_ONCE = STREAM_QUEUE / 8,  /* when full, the queue is waited for until this many entries are done, */
    FREED_NS = 500000, /* or until this much later than the first: each wait costs a clock read */
};

/* Streams are never freed, so that a stale handle is an error, not a crash. Under driver_lock. */
static struct cuda_stream *spare;
static u64 last_id = 2; /* 1 and 2 are the default streams' */

struct cuda_stream *stream_spare(void) {
    pthread_mutex_lock(&driver_lock);
    struct cuda_stream *stream = spare;
    if (stream) spare = stream->next;
    u64 id = ++last_id;
    pthread_mutex_unlock(&driver_lock);
    if (!stream) stream = malloc(sizeof *stream);
    if (!stream) return NULL;
    memset(stream, 0, offsetof(struct cuda_stream, queue));
    memset(&stream->first, 0, sizeof *stream - offsetof(struct cuda_stream, first));
    stream->id = id;
    return stream;
}

void stream_recycle(struct cuda_stream *stream) {
    HOLD(driver_lock);
    stream->next = spare;
    spare = stream;
}

struct device *stream_device(const struct cuda_stream *stream) { return stream->context->device; }

u64 stream_start(struct cuda_stream *stream) {
    struct cuda_context *context = stream->context;
    struct device *device = context->device;
    u64 start = atomic_load_explicit(&stream->tail, memory_order_relaxed);
    u64 other = 0;
    if (stream->legacy)
        other = atomic_load_explicit(&context->blocking_tail, memory_order_acquire);
    else if (!stream->non_blocking)
        other = atomic_load_explicit(&context->legacy->tail, memory_order_acquire);
    if (other > start) start = other;
    /* If the stream may be idle now, new work begins at the current local time. */
    u64 surely_until = start + atomic_load_explicit(&device->lag, memory_order_acquire);
    if (surely_until > ticks_latest(&device->ticks)) return start;
    u64 now = ticks_now(&device->ticks);
    if (surely_until <= now) {
        device_advance_to(device, now);
        u64 received = atomic_load_explicit(&device->received, memory_order_relaxed);
        if (received > start) start = received;
    }
    return start;
}

void stream_delay(struct cuda_stream *stream, u64 end) {
    if (atomic_load_explicit(&stream->tail, memory_order_relaxed) < end)
        atomic_store_explicit(&stream->tail, end, memory_order_release);
    if (!stream->legacy && !stream->non_blocking) raise_to(&stream->context->blocking_tail, end);
}

static void forget_done(struct cuda_stream *stream, u64 received) {
    while (stream->count && stream->queue[stream->first] <= received) {
        stream->first = (stream->first + 1) % STREAM_QUEUE;
        stream->count--;
    }
}

bool stream_full(struct cuda_stream *stream) {
    if (stream->count == STREAM_QUEUE) forget_done(stream, stream->context->device->received);
    return stream->count == STREAM_QUEUE;
}

CUresult stream_room(struct cuda_stream *stream) {
    struct device *device = stream->context->device;
    if (!stream_full(stream)) return CUDA_SUCCESS;
    u64 first = stream->queue[stream->first], end = first;
    for (u32 i = 1; i < FREED_AT_ONCE; i++) {
        u64 each = stream->queue[(stream->first + i) % STREAM_QUEUE];
        if (each - first > FREED_NS) break;
        end = each;
    }
    CUresult result = device_wait_how(device, end, false);
    forget_done(stream, device->received);
    return result;
}

/* After work that never ends no time can be computed, and sums must not wrap. */
static u64 end_of(u64 start, u64 duration_ns) {
    if (start >= SIM_NEVER) return start;
    return start + (duration_ns < SIM_NEVER ? duration_ns : SIM_NEVER);
}

u64 stream_append(struct cuda_stream *stream, u64 start, u64 duration_ns) {
    u64 end = end_of(start, duration_ns);
    stream->queue[(stream->first + stream->count++) % STREAM_QUEUE] = end;
    stream_delay(stream, end);
    device_publish(stream->context->device, end);
    return end;
}
