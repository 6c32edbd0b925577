/* Stream capture. A capture belongs to the stream that began it; other streams join through events.
 */
#include "capture.h"

#include <stdlib.h>

pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;

static struct capture *captures; /* all captures that have not ended */
static _Atomic u32 capture_count; /* their number, so that others need not take the lock */
static u64 last_id;

/* ---- lifetime; all under captures_lock --------------------------------------------------------------------------- */

static void capture_drop(struct capture *capture) {
    if (atomic_fetch_sub(&capture->references, 1) == 1) free(capture);
}

static void invalidate(struct capture *capture) { capture->status = CAPTURE_INVALIDATED; }

void capture_enter(struct capture *capture, struct cuda_stream *stream) {
    stream->next_member = capture->members;
    capture->members = stream;
    atomic_store_explicit(&stream->capture, capture, memory_order_release);
    if (!stream->non_blocking) atomic_fetch_add(&stream->context->blocking_captures, 1);
}

static void leave(struct cuda_stream *stream) {
    nodes_clear(&stream->captured);
    atomic_store(&stream->capture, NULL);
    if (!stream->non_blocking) atomic_fetch_sub(&stream->context->blocking_captures, 1);
}

struct capture *capture_new(struct cuda_stream *origin, CUstreamCaptureMode mode, struct cuda_graph *graph) {
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture) return NULL;
    capture->references = 1;
    capture->status = CAPTURE_ACTIVE;
    capture->mode = mode;
    capture->thread = thread_here();
    capture->origin = origin;
    capture->graph = graph;
    capture->id = ++last_id;
    capture->next = captures;
    captures = capture;
    atomic_fetch_add(&capture_count, 1);
    capture_enter(capture, origin);
    return capture;
}

void capture_end(struct capture *capture) {
    for (struct cuda_stream *stream = capture->members, *next; stream; stream = next) {
        next = stream->next_member;
        leave(stream);
    }
    UNLINK(captures, capture, next);
    capture->status = CAPTURE_NONE;
    atomic_fetch_sub(&capture_count, 1);
    capture_drop(capture);
}

void capture_leave(struct cuda_stream *stream) {
    HOLD(captures_lock);
    struct capture *capture = stream->capture;
    if (capture && capture->origin == stream) {
        if (capture->owns_graph) graph_drop(capture->graph);
        capture_end(capture);
    } else if (capture) {
        invalidate(capture);
        UNLINK(capture->members, stream, next_member);
        leave(stream);
    }
}

/* ---- forbidden calls --------------------------------------------------------------------------------------------- */

bool stream_capturing(const struct cuda_stream *stream) {
    return atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL;
}

static bool captures_blocking(const struct capture *capture, const struct cuda_context *context) {
    for (const struct cuda_stream *stream = capture->members; stream; stream = stream->next_member)
        if (stream->context == context && !stream->non_blocking) return true;
    return false;
}

static void invalidate_blocking(const struct cuda_context *context) {
    HOLD(captures_lock);
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (captures_blocking(capture, context)) invalidate(capture);
}

bool stream_is_implicit(const struct cuda_stream *stream) {
    return stream->legacy && atomic_load_explicit(&stream->context->blocking_captures, memory_order_acquire);
}

CUresult stream_begin(struct cuda_stream *stream, bool *capturing) {
    const struct capture *capture = atomic_load_explicit(&stream->capture, memory_order_acquire);
    *capturing = capture;
    if (capture) return capture->status == CAPTURE_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (!stream_is_implicit(stream)) return CUDA_SUCCESS;
    invalidate_blocking(stream->context);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult capture_forbids_asking(struct cuda_stream *stream) {
    bool capturing;
    CUresult result = stream_begin(stream, &capturing);
    if (result || !capturing) return result;
    HOLD(captures_lock);
    if (stream->capture) invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Invalidates the captures selected by `is`; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if there were any. */
static CUresult forbid(bool (*is)(const struct capture *, const void *), const void *with) {
    if (!atomic_load_explicit(&capture_count, memory_order_acquire)) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    HOLD(captures_lock);
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (!is(capture, with)) continue;
        invalidate(capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

/* A thread in global mode is restricted by its own captures and all global ones, in thread-local mode by its own,
 * otherwise by none. */
static bool minds(const struct capture *capture, const void *with) {
    const struct thread *thread = with;
    if (thread->mode == CAPTURE_RELAXED || capture->mode == CAPTURE_RELAXED) return false;
    if (capture->thread == thread) return true;
    return thread->mode == CAPTURE_GLOBAL && capture->mode == CAPTURE_GLOBAL;
}

CUresult capture_forbids_unsafe(void) { return forbid(minds, thread_here()); }

static bool is_in(const struct capture *capture, const void *with) {
    for (const struct cuda_stream *stream = capture->members; stream; stream = stream->next_member)
        if (stream->context == with) return true;
    return false;
}

CUresult capture_forbids_waiting(struct cuda_context *context) { return forbid(is_in, context); }

/* ---- capturing --------------------------------------------------------------------------------------------------- */

/* Takes the reference to `task`. Later work in the stream depends on the new node. */
static CUresult add(struct cuda_stream *stream, struct task *task) {
    HOLD(captures_lock);
    struct capture *capture = stream->capture;
    CUresult result = !capture                                 ? CUDA_ERROR_ILLEGAL_STATE
                      : capture->status == CAPTURE_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                                               : CUDA_SUCCESS;
    struct cuda_node *node;
    if (result)
        task_drop(task);
    else
        result = graph_add(capture->graph, &stream->captured, task, &node);
    if (!result) {
        nodes_clear(&stream->captured);
        result = nodes_add(&stream->captured, node);
    }
    return result;
}

CUresult capture_add(struct cuda_stream *stream, const struct work *work) { return add(stream, task_new(work)); }

CUresult capture_kernel(struct cuda_stream *stream, struct cuda_function *function, const struct shape *shape,
                        u64 duration_ns) {
    return add(stream, task_kernel(function, shape, duration_ns));
}

CUresult capture_child(struct cuda_stream *stream, const struct cuda_graph *child) {
    return add(stream, task_of_child(child));
}

CUresult capture_host(struct cuda_stream *stream, CUhostFn function, void *data) {
    return add(stream, task_host(function, data));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void uncapture(struct cuda_event *event) {
    nodes_clear(&event->captured);
    if (event->capture) capture_drop(event->capture);
    event->capture = NULL;
}

void event_uncapture(struct cuda_event *event) {
    if (!event->capture) return;
    HOLD(captures_lock);
    uncapture(event);
}

CUresult event_captured(const struct cuda_event *event) {
    return event->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult capture_record(struct cuda_stream *stream, struct cuda_event *event) {
    HOLD(captures_lock);
    uncapture(event);
    CUresult result = stream->capture ? nodes_add_all(&event->captured, &stream->captured) : CUDA_ERROR_ILLEGAL_STATE;
    if (!result) {
        event->capture = stream->capture;
        atomic_fetch_add(&event->capture->references, 1);
    }
    return result;
}

/* Either of the two may be capturing, or both. */
static CUresult join(struct cuda_stream *stream, const struct cuda_event *event) {
    struct capture *ours = stream->capture, *theirs = event->capture;
    if (theirs && theirs->status == CAPTURE_NONE) theirs = NULL;
    if (ours && !theirs) {
        if (!event->recorded && !event->capture) return CUDA_SUCCESS;
        invalidate(ours);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!theirs) return CUDA_ERROR_INVALID_VALUE;
    if (ours && ours != theirs) {
        invalidate(ours);
        invalidate(theirs);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (theirs->status == CAPTURE_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy) {
        invalidate(theirs);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!ours) capture_enter(theirs, stream);
    return nodes_add_all(&stream->captured, &event->captured);
}

CUresult capture_wait(struct cuda_stream *stream, struct cuda_event *event, unsigned flags, bool *handled) {
    bool capturing;
    CUresult result = stream_begin(stream, &capturing);
    *handled = capturing || event->capture;
    if (result) return result;
    if (flags) return capturing ? add(stream, task_event(NODE_WAIT_EVENT, event)) : CUDA_ERROR_INVALID_VALUE;
    if (!*handled) return CUDA_SUCCESS;
    HOLD(captures_lock);
    return join(stream, event);
}
