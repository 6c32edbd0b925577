/* Streams in the API: creation and destruction, lookup by handle, adding work and waiting. */
#include "streams.h"

CUresult stream_new(struct cuda_context *context, unsigned flags, int priority, struct cuda_stream **made) {
    struct cuda_stream *stream = stream_spare();
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

/* A stream that still holds work is reused only once the helper has released all of it. */
void stream_drop(struct cuda_stream *stream) {
    raise_to(&stream->context->dropped_tail, stream->tail);
    pthread_mutex_lock(&driver_lock);
    UNLINK(stream->context->streams, stream, next);
    pthread_mutex_unlock(&driver_lock);
    stream->magic = 0;
    if (!stream_abandon(stream)) stream_recycle(stream);
}

static bool is_own(const struct cuda_stream *stream, u64 id) {
    return stream && stream->magic == STREAM_MAGIC && stream->id == id;
}

static void drop_own_streams(void *given) {
    const struct thread *thread = given;
    if (driver_ready()) return;
    for (unsigned i = 0; i < sizeof thread->own / sizeof *thread->own; i++)
        if (is_own(thread->own[i].stream, thread->own[i].id)) stream_drop(thread->own[i].stream);
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
    thread_at_end(drop_own_streams);
    return CUDA_SUCCESS;
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

/* The end of everything that synchronizing with the stream waits for. */
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

/* A stream that holds work; streams destroyed meanwhile stay readable. */
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
