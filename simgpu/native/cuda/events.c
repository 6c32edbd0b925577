/* Events in the API: creation, recording, queries and waiting. */
#include "streams.h"

#include <stdlib.h>

/* Events are never freed, so that a stale handle is an error, not a crash. Under driver_lock. */
static struct cuda_event *spare;

CUresult event_of(CUevent handle, struct cuda_event **found) {
    TRY(driver_ready());
    if (!handle || handle->magic != EVENT_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    *found = handle;
    return device_fault(handle->device);
}

CALL(cuEventCreate, CUevent *made, unsigned flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool shared = flags & CU_EVENT_INTERPROCESS, timed = !(flags & CU_EVENT_DISABLE_TIMING);
    if (!made || flags & ~known || (shared && timed)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    struct cuda_event *event = spare;
    if (event) spare = event->newer;
    pthread_mutex_unlock(&driver_lock);
    if (!event) event = malloc(sizeof *event);
    if (!event) return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (struct cuda_event){.magic = EVENT_MAGIC, .flags = flags, .device = context->device, .context = context};
    *made = event;
    return CUDA_SUCCESS;
}

CALL(cuEventDestroy_v2, CUevent handle) {
    struct cuda_event *event;
    TRY(event_of(handle, &event));
    pthread_mutex_lock(&event->device->advancing);
    event_forget(event);
    event->magic = 0;
    pthread_mutex_unlock(&event->device->advancing);
    event_uncapture(event);
    HOLD(driver_lock);
    event->newer = spare;
    spare = event;
    return CUDA_SUCCESS;
}

CALL(cuEventDestroy, CUevent handle) { return cuEventDestroy_v2(handle); }

/* Records the stream's current work. */
CUresult event_record(struct cuda_event *event, struct cuda_stream *stream) {
    if (stream_holds(stream)) {
        struct mark *mark;
        CUresult result = stream_mark(stream, event, &mark);
        if (!result) event_mark(event, mark);
        return result;
    }
    HOLD(stream->lock);
    u64 start = stream_start(stream);
    stream_delay(stream, start);
    event_set(event, stream->context->device, start);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent handle, CUstream in, bool per_thread) {
    struct cuda_event *event;
    struct cuda_stream *stream;
    bool capturing;
    TRY(event_of(handle, &event));
    TRY(stream_of(in, per_thread, &stream));
    TRY(stream_begin(stream, &capturing));
    if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (capturing) return capture_record(stream, event);
    event_uncapture(event);
    return event_record(event, stream);
}

CALL_TWICE(cuEventRecord, _ptsz, record(event, stream, per_thread), CUevent event, CUstream stream)

CUresult event_done(struct cuda_event *event) {
    if (!event->recorded) return CUDA_SUCCESS;
    if (event->mark) return CUDA_ERROR_NOT_READY;
    if (event->device->received < event->local) device_advance(event->device);
    return event->device->received < event->local ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CALL(cuEventQuery, CUevent handle) {
    struct cuda_event *event;
    CUresult result = event_of(handle, &event);
    if (!result) result = event_captured(event);
    if (!result) result = capture_forbids_unsafe();
    if (!result) result = event_done(event);
    if (!result) device_act(event->device);
    return result;
}

CALL(cuEventSynchronize, CUevent handle) {
    struct cuda_event *event;
    CUresult result = event_of(handle, &event);
    if (!result) result = event_captured(event);
    if (result || !event->recorded) return result;
    pthread_mutex_lock(&event->device->advancing);
    struct mark *mark = event->mark ? mark_keep(event->mark) : NULL;
    pthread_mutex_unlock(&event->device->advancing);
    if (mark) result = mark_settle(mark);
    u64 local = mark ? mark->local : event->local;
    mark_drop(mark);
    if (!result) result = device_wait_how(event->device, local, !(event->flags & CU_EVENT_BLOCKING_SYNC));
    device_act(event->device);
    return result;
}

/* The time of a recorded event that is not captured, or CUDA_ERROR_NOT_READY. */
static CUresult wall_of(struct cuda_event *event, u64 *wall) {
    if (!event->recorded || event->flags & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
    TRY(event_captured(event));
    TRY(event_done(event));
    HOLD(event->device->advancing);
    *wall = event_wall(event);
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent from, CUevent to) {
    struct cuda_event *first, *second;
    u64 begin, end;
    TRY(event_of(from, &first));
    TRY(event_of(to, &second));
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (first->context != second->context) return CUDA_ERROR_INVALID_HANDLE;
    TRY(wall_of(first, &begin));
    TRY(wall_of(second, &end));
    *milliseconds = (float)((double)(int64_t)(end - begin) / 1e6);
    return CUDA_SUCCESS;
}

CALL(cuEventElapsedTime, float *ms, CUevent from, CUevent to) { return elapsed(ms, from, to); }
CALL(cuEventElapsedTime_v2, float *ms, CUevent from, CUevent to) { return elapsed(ms, from, to); }

/* What the stream must wait for: nothing, a time of its own device, or a mark. */
CUresult stream_wait(struct cuda_stream *stream, struct cuda_event *event) {
    if (!event->recorded) return CUDA_SUCCESS;
    struct device *device = stream->context->device;
    pthread_mutex_lock(&event->device->advancing);
    struct mark *mark = event->mark ? mark_keep(event->mark) : NULL;
    u64 local = event->local;
    pthread_mutex_unlock(&event->device->advancing);
    if (!mark && event->device != device) {
        if (!event_done(event)) return CUDA_SUCCESS;
        mark = mark_new(event->device, true, local);
    } else if (!mark && stream_holds(stream)) {
        mark = mark_new(device, true, local);
    } else if (!mark) {
        pthread_mutex_lock(&stream->lock);
        stream_delay(stream, local);
        pthread_mutex_unlock(&stream->lock);
        return CUDA_SUCCESS;
    }
    if (!mark) return CUDA_ERROR_OUT_OF_MEMORY;
    return stream_hold(stream, &(struct held){.kind = HELD_WAIT, .mark = mark});
}

static CUresult wait(CUstream handle, CUevent for_event, unsigned flags, bool per_thread) {
    struct cuda_event *event;
    struct cuda_stream *stream;
    TRY(event_of(for_event, &event));
    TRY(stream_of(handle, per_thread, &stream));
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    bool handled;
    CUresult result = capture_wait(stream, event, flags, &handled);
    return result || handled ? result : stream_wait(stream, event);
}

CALL_TWICE(cuStreamWaitEvent, _ptsz, wait(stream, event, flags, per_thread), CUstream stream, CUevent event,
           unsigned flags)
