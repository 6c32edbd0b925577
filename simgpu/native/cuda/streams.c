/* Order and time of work: one number for each stream, the local time at which all of its work ends. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

enum {
    FREED_AT_ONCE = STREAM_QUEUE / 8,  /* a full queue is waited for until so many are done, */
    FREED_NS = 500000, /* or until this much later than the first: each wait costs a look at the clock */
};

/* Streams are never given back to libc, so that a stale handle is an error and no crash. Under driver_lock. */
static struct cuda_stream *spare;
static u64 last_id = 2; /* 1 and 2 are the default streams' */

static struct cuda_stream *take_spare(void) {
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

CUresult stream_new(struct cuda_context *context, unsigned flags, int priority, struct cuda_stream **made) {
    struct cuda_stream *stream = take_spare();
    if (!stream) return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_init(&stream->lock, NULL);
    stream->context = context;
    stream->non_blocking = flags & CU_STREAM_NON_BLOCKING;
    stream->priority = priority;
    stream->magic = STREAM_MAGIC;
    pthread_mutex_lock(&driver_lock);
    stream->next = context->streams;
    context->streams = stream;
    pthread_mutex_unlock(&driver_lock);
    *made = stream;
    return CUDA_SUCCESS;
}

static void unlink_stream(const struct cuda_stream *stream) {
    HOLD(driver_lock);
    struct cuda_stream **each = &stream->context->streams;
    while (*each && *each != stream) each = &(*each)->next;
    if (*each) *each = stream->next;
}

void stream_recycle(struct cuda_stream *stream) {
    HOLD(driver_lock);
    stream->next = spare;
    spare = stream;
}

/* A stream that still holds work is used again only when the helper has let all of it go. */
void stream_drop(struct cuda_stream *stream) {
    raise_to(&stream->context->dropped_tail, stream->tail);
    unlink_stream(stream);
    stream->magic = 0;
    if (!stream_abandon(stream)) stream_recycle(stream);
}

static bool is_own(const struct cuda_stream *stream, u64 id) {
    return stream && stream->magic == STREAM_MAGIC && stream->id == id;
}

/* The calling thread's own default stream in a context. */
static CUresult own_stream(struct cuda_context *context, struct cuda_stream **found) {
    struct thread *thread = thread_here();
    int place = -1;
    for (int i = 0; i < (int)(sizeof thread->own / sizeof *thread->own); i++) {
        struct cuda_stream *own = thread->own[i].stream;
        if (!is_own(own, thread->own[i].id)) {
            if (place < 0) place = i;
        } else if (own->context == context) {
            *found = own;
            return CUDA_SUCCESS;
        }
    }
    if (place < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(stream_new(context, 0, 0, found));
    (*found)->per_thread = true;
    thread->own[place].stream = *found;
    thread->own[place].id = (*found)->id;
    thread_will_exit();
    return CUDA_SUCCESS;
}

void thread_drop_streams(const struct thread *thread) {
    for (unsigned i = 0; i < sizeof thread->own / sizeof *thread->own; i++)
        if (is_own(thread->own[i].stream, thread->own[i].id)) stream_drop(thread->own[i].stream);
}

CUresult stream_of(CUstream handle, bool per_thread, struct cuda_stream **found) {
    if ((uintptr_t)handle > 2) {
        if (handle->magic != STREAM_MAGIC) return driver_ready() ? driver_ready() : CUDA_ERROR_INVALID_HANDLE;
        if (thread_here()->serves) return CUDA_ERROR_NOT_PERMITTED;
        *found = handle;
        return device_fault(handle->context->device);
    }
    struct cuda_context *context;
    TRY(context_current(&context));
    if (handle == CU_STREAM_PER_THREAD || (!handle && per_thread)) return own_stream(context, found);
    *found = context->legacy;
    return CUDA_SUCCESS;
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
    /* Not surely busy until now: what begins now begins at the local time that it is now. */
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

/* Behind work that never ends nothing more can be said, and sums must not wrap. */
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

CUresult stream_enqueue(struct cuda_stream *stream, u64 duration_ns, u64 *end) {
    while (stream_holds(stream)) {
        if (!end) return stream_hold(stream, &(struct held){.kind = HELD_RUN, .duration_ns = duration_ns});
        TRY(stream_settle(stream));
    }
    pthread_mutex_lock(&stream->lock);
    CUresult result = stream_room(stream);
    u64 then = result ? 0 : stream_append(stream, stream_start(stream), duration_ns);
    pthread_mutex_unlock(&stream->lock);
    if (end) *end = then;
    return result;
}

/* The end of everything that synchronising with the stream waits for. */
static u64 end_of_all(struct cuda_stream *stream) {
    u64 end = stream->tail;
    if (stream->legacy && stream->context->blocking_tail > end) end = stream->context->blocking_tail;
    return end;
}

CUresult stream_finish(struct cuda_stream *stream) {
    CUresult result = stream_settle(stream);
    bool exactly = !(stream->context->flags & CU_CTX_SCHED_BLOCKING_SYNC);
    if (!result) result = device_wait_how(stream->context->device, end_of_all(stream), exactly);
    device_act(stream->context->device);
    return result;
}

u64 context_tail(struct cuda_context *context) {
    u64 end = context->dropped_tail;
    HOLD(driver_lock);
    for (struct cuda_stream *each = context->streams; each; each = each->next)
        if (each->tail > end) end = each->tail;
    return end;
}

/* A stream that holds work; streams that go meanwhile stay readable. */
static struct cuda_stream *one_that_holds(struct cuda_context *context) {
    struct cuda_stream *found = NULL;
    HOLD(driver_lock);
    for (struct cuda_stream *each = context->streams; each && !found; each = each->next)
        if (each->held) found = each;
    return found;
}

CUresult context_settle(struct cuda_context *context) {
    CUresult result = CUDA_SUCCESS;
    struct cuda_stream *stream;
    while (!result && (stream = one_that_holds(context))) result = stream_settle(stream);
    return result;
}

CUresult stream_idle(struct cuda_stream *stream) {
    struct device *device = stream->context->device;
    if (stream_holds(stream)) return CUDA_ERROR_NOT_READY;
    u64 end = end_of_all(stream);
    if (device->received < end) device_advance(device);
    return device->received < end ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult stream_after(struct cuda_stream *stream, void (*action)(void *argument), void *argument) {
    CUresult result = stream_settle(stream);
    if (!result) device_after(stream->context->device, end_of_all(stream), action, argument);
    return result;
}
