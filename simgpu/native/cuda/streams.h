/* Streams, events and held work: shared by the files of the time side, bottom-up: stream_times.c, clock.c, queue.c,
 * held.c, streams.c, capture.c, events.c.
 *
 * Work whose beginning is known is a number, its end in the device's local time; nothing runs on its behalf. Only work
 * behind something that depends on the host (a callback, a value in memory, an event of another device) is held in a
 * list of its stream until then; a helper thread, started with the first such list, releases it.
 *
 * Lock order: stream.lock, device.advancing, then those of single files. A stream's lock is held while its queue is
 * full. driver_lock is taken alone.
 */
#pragma once

#include "driver.h"

enum { STREAM_QUEUE = 1024, STREAM_MAGIC = 0x7374726d, EVENT_MAGIC = 0x65766e74, CONTEXT_MAGIC = 0x63747874 };

/* A position in a stream, whose time is known once all work before it is. Counted: events and held work refer to it. */
struct mark {
    _Atomic u32 references;
    _Atomic bool known;
    struct device *device;
    u64 local; /* valid once known */
};

enum held_kind { HELD_RUN, HELD_MARK, HELD_WAIT, HELD_CALL, HELD_VALUE, HELD_SPIN, HELD_LINK };

struct held {
    struct held *next;
    enum held_kind kind;
    u64 duration_ns; /* RUN; LINK: of the link's time */
    u32 way; /* LINK */
    u64 until; /* LINK, once begun: wall time of its end */
    struct mark *mark; /* MARK, WAIT */
    struct cuda_event *event; /* MARK: recorded there, if any */
    CUresult (*call)(void *argument, CUresult status); /* CALL: runs on the helper thread, when everything before it is
                                                        * done */
    void *argument;
    bool (*ready)(const void *argument); /* VALUE, SPIN: polled */
    bool begun; /* SPIN: occupies the card until it is ready; LINK */
};

struct nodes {
    struct cuda_node **node;
    size_t count;
};

struct cuda_stream {
    u32 magic;
    bool legacy, per_thread, non_blocking, abandoned;
    int priority;
    u64 id;
    struct cuda_context *context;
    struct cuda_stream *next, *next_holding;
    pthread_mutex_t lock;
    _Atomic u64 tail; /* end of all work that is not held, in local time */
    u64 queue[STREAM_QUEUE]; /* ends of work that may still run */
    u32 first, count;
    _Atomic u32 held; /* length of the list */
    struct held *held_first, *held_last;
    bool holding; /* the helper watches it */
    struct cuda_stream *next_member; /* of the same capture */
    struct capture *_Atomic capture;
    struct nodes captured; /* dependencies of the next captured work */
};

struct cuda_event {
    u32 magic, flags;
    bool recorded;
    struct device *device;
    struct cuda_context *context;
    struct mark *mark; /* where it was recorded, while the time is unknown */
    u64 local, wall; /* wall 0: not reached, or not checked since */
    struct cuda_event *newer, *older; /* links of device.timing */
    bool timing; /* whether it is in that list */
    struct capture *capture; /* it was recorded in a capturing stream */
    struct nodes captured;
};

/* ---- stream_times.c ---------------------------------------------------------------------------------------------- */

struct mark *mark_new(struct device *device, bool known, u64 local);
struct mark *mark_keep(struct mark *mark);
void mark_drop(struct mark *mark);

/* Sets the event's time to local time `local`, or to a mark, whose reference is transferred. */
void event_set(struct cuda_event *event, struct device *device, u64 local);
void event_mark(struct cuda_event *event, struct mark *mark);

/* The time of the mark is known now; applies it if the event was not recorded again since. */
void event_reached(struct cuda_event *event, const struct mark *mark);

/* Both under device->advancing: discards the event's recording; returns its wall time. */
void event_forget(struct cuda_event *event);
u64 event_wall(struct cuda_event *event);

/* Under device->advancing: sets the wall times of reached events. */
void events_resolve(struct device *device, const struct sim_share *share);

/* ---- clock.c ----------------------------------------------------------------------------------------------------- */

void device_advance_to(struct device *device, u64 now);

/* Extends the process's published work to local time `end`. */
void device_publish(struct device *device, u64 end);

/* As device_wait, without actions; `exactly`: returns at that very time, by spinning. */
CUresult device_wait_how(struct device *device, u64 end, bool exactly);

/* Runs due actions. No lock is held. */
void device_act(struct device *device);

void device_after(struct device *device, u64 end, void (*action)(void *argument), void *argument);

static inline void raise_to(_Atomic u64 *word, u64 value) {
    u64 was = atomic_load_explicit(word, memory_order_relaxed);
    while (was < value &&
           !atomic_compare_exchange_weak_explicit(word, &was, value, memory_order_release, memory_order_relaxed));
}

/* ---- queue.c ----------------------------------------------------------------------------------------------------- */

/* A stream with only a number; NULL: no memory on the host. */
struct cuda_stream *stream_spare(void);

/* Makes a dropped stream that holds nothing available for reuse. */
void stream_recycle(struct cuda_stream *stream);

/* Waits until the queue is not full; the lock is held. Precedes stream_start. */
CUresult stream_room(struct cuda_stream *stream);
bool stream_full(struct cuda_stream *stream);

/* When work added now would begin; the stream's lock is held. */
u64 stream_start(struct cuda_stream *stream);

/* Adds work that begins at `start`, and returns its end; the lock is held and there is room. */
u64 stream_append(struct cuda_stream *stream, u64 start, u64 duration_ns);

/* Later work in this stream begins no earlier than local time `end`; the lock is held. */
void stream_delay(struct cuda_stream *stream, u64 end);

/* ---- streams.c --------------------------------------------------------------------------------------------------- */

CUresult stream_new(struct cuda_context *context, unsigned flags, int priority, struct cuda_stream **made);

/* Invalidates its handle; its remaining work is completed. */
void stream_drop(struct cuda_stream *stream);

/* The end of all work of a context; waiting until none of its streams holds any. */
u64 context_tail(struct cuda_context *context);
CUresult context_settle(struct cuda_context *context);

/* CUDA_SUCCESS if all work of the stream is done. */
CUresult stream_idle(struct cuda_stream *stream);

/* ---- held.c ------------------------------------------------------------------------------------------------------ */

/* Whether new work of the stream must be held too. */
static inline bool stream_holds(const struct cuda_stream *stream) {
    const struct cuda_context *context = stream->context;
    if (atomic_load_explicit(&stream->held, memory_order_acquire)) return true;
    if (stream->legacy) return atomic_load_explicit(&context->blocking_held, memory_order_acquire) != 0;
    return !stream->non_blocking && atomic_load_explicit(&context->legacy->held, memory_order_acquire);
}

/* Holds a copy of `work` in the stream. No lock is held. Waits while too much is held. */
CUresult stream_hold(struct cuda_stream *stream, const struct held *work);

/* A mark after everything that the stream holds now, where `event` (may be NULL) is recorded; the caller owns one
 * reference. No lock is held. */
CUresult stream_mark(struct cuda_stream *stream, struct cuda_event *event, struct mark **mark);

/* The stream is no longer used. True if it still holds work: then the helper recycles it. */
bool stream_abandon(struct cuda_stream *stream);

/* Waits until the stream holds nothing. */
CUresult stream_settle(struct cuda_stream *stream);

/* Waits until the mark is known. */
CUresult mark_settle(struct mark *mark);

/* A copy over the link between card and host, which occupies one direction of the link, not the card. */
CUresult stream_link(struct cuda_stream *stream, enum sim_way way, u64 duration_ns);

/* Has the helper thread call `function` when all work before it is done. */
CUresult stream_call(struct cuda_stream *stream, CUhostFn function, void *data);

/* ---- events.c ---------------------------------------------------------------------------------------------------- */

CUresult event_of(CUevent handle, struct cuda_event **found);

/* CUDA_SUCCESS once it is reached, CUDA_ERROR_NOT_READY before. */
CUresult event_done(struct cuda_event *event);

/* cuEventRecord and cuStreamWaitEvent when nothing captures. */
CUresult event_record(struct cuda_event *event, struct cuda_stream *stream);
CUresult stream_wait(struct cuda_stream *stream, struct cuda_event *event);

/* ---- capture.c --------------------------------------------------------------------------------------------------- */

/* Waiting for a context or stream that captures is an error, and invalidates the captures. */
CUresult capture_forbids_waiting(struct cuda_context *context);
CUresult capture_forbids_asking(struct cuda_stream *stream);

/* Events in captures. An event recorded in a capturing stream represents what is captured there. `capture_wait` does
 * everything (*handled), or leaves it to the caller if neither stream nor event captures. */
CUresult capture_record(struct cuda_stream *stream, struct cuda_event *event);
CUresult capture_wait(struct cuda_stream *stream, struct cuda_event *event, unsigned flags, bool *handled);
CUresult event_captured(const struct cuda_event *event);
void event_uncapture(struct cuda_event *event);

CUresult capture_kernel(struct cuda_stream *stream, struct cuda_function *function, const struct shape *shape,
                        u64 duration_ns);
CUresult capture_child(struct cuda_stream *stream, const struct cuda_graph *child);
CUresult capture_host(struct cuda_stream *stream, CUhostFn function, void *data);

/* The stream is destroyed: its capture becomes invalid. */
void capture_leave(struct cuda_stream *stream);

/* ---- thread.c, current.c ----------------------------------------------------------------------------------------- */

/* State of the calling thread. */
struct thread {
    struct cuda_context *stack[16];
    unsigned depth;
    bool serves; /* it runs a host function, which may not call the driver */
    CUstreamCaptureMode mode;
    struct {
        struct cuda_stream *stream;
        u64 id; /* if different, the stream is gone */
    } own[16]; /* its default streams, one per context */
};

struct thread *thread_here(void);

/* Registers `run` to be called with the thread's state when a thread ends; there is one such function. */
void thread_at_end(void (*run)(void *thread));

/* Makes it the calling thread's current context, above the earlier ones. */
CUresult context_push(struct cuda_context *context);

/* ---- contexts.c, for primary.c and green.c ----------------------------------------------------------------------- */

/* Serializes creation and destruction of contexts; taken before any other lock. */
extern pthread_mutex_t contexts_lock;

/* A context without references; the start of its life. Both under contexts_lock. */
struct cuda_context *context_new(struct device *device, bool is_primary);
CUresult context_begin(struct cuda_context *context, u32 flags);
void context_end(struct cuda_context *context);
