/* Held work: callbacks, values in memory, events of other devices, and everything behind these in the stream. */
#include "streams.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

enum { POLL_NS = 50000, SPUN_NS = 2 * POLL_NS, LONGEST_NS = 50000000 };

/* Streams that hold work, the helper thread that releases it, and the threads that wait for that. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake, gone;
static struct cuda_stream *holding;
static bool started, news;

/* ---- the helper thread ------------------------------------------------------------------------------------------- */

static bool received(struct device *device, u64 end) {
    if (device->received < end) device_advance(device);
    return device->received >= end;
}

/* Keeps the card busy until a little after the next check. */
static void spin_on(struct cuda_stream *stream) {
    u64 start = stream_start(stream);
    if (!stream_full(stream) && start < stream->context->device->received + SPUN_NS)
        stream_append(stream, start, SPUN_NS);
}

/* Whether the stream's first held item is due; otherwise *then is when to check again. The stream's lock is held. */
static bool due(struct cuda_stream *stream, struct held *held, u64 *then) {
    struct device *device = stream->context->device;
    const struct mark *mark = held->mark;
    u64 again = sim_now() + POLL_NS, start;
    switch (held->kind) {
    case HELD_MARK: return true;
    case HELD_RUN:
        if (stream_full(stream))
            device_advance(device); /* all of it waits, so no other thread may check what is done */
        if (!stream_full(stream)) return true;
        break;
    case HELD_VALUE:
        if (held->ready(held->argument)) return true;
        break;
    case HELD_SPIN:
        if (!held->begun) held->begun = received(device, stream_start(stream));
        if (held->begun && held->ready(held->argument)) return true;
        if (held->begun) spin_on(stream);
        break;
    case HELD_WAIT:
        if (mark->known && (mark->device == device || received(mark->device, mark->local))) return true;
        break;
    case HELD_CALL:
        start = stream_start(stream);
        if (received(device, start)) return true;
        if (start - device->received > POLL_NS) again += start - device->received - POLL_NS;
        break;
    case HELD_LINK:
        if (!held->begun && received(device, stream_start(stream))) {
            held->until = sim_link_take(device->line, (enum sim_way)held->way, sim_now(), held->duration_ns);
            held->begun = true;
        }
        if (held->begun && sim_now() >= held->until) return true;
        if (held->begun) again = held->until;
    }
    if (again < *then) *then = again;
    return false;
}

/* Releases one item, without its callback. The stream's lock is held. */
static void let_go(struct cuda_stream *stream, struct held *held) {
    struct device *device = stream->context->device;
    if (held->kind == HELD_RUN) stream_append(stream, stream_start(stream), held->duration_ns);
    if (held->kind == HELD_WAIT && held->mark->device == device) stream_delay(stream, held->mark->local);
    if (held->kind == HELD_MARK) {
        held->mark->local = stream_start(stream);
        atomic_store(&held->mark->known, true);
        if (held->event) event_reached(held->event, held->mark);
    }
    mark_drop(held->mark);
}

static void count_held(struct cuda_stream *stream, int by) {
    u32 was = atomic_fetch_add(&stream->held, (u32)by);
    bool changed = by > 0 ? was == 0 : was == 1;
    if (changed && !stream->legacy && !stream->non_blocking) atomic_fetch_add(&stream->context->blocking_held, (u32)by);
}

static CUresult fault_of(const struct cuda_context *context) {
    return context->references ? device_fault(context->device) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Releases due items; after a fault all remaining ones are dropped, and callbacks get the error. */
static void step(struct cuda_stream *stream, u64 *then) {
    pthread_mutex_lock(&stream->lock);
    struct held *held;
    while ((held = stream->held_first)) {
        CUresult fault = fault_of(stream->context);
        if (!fault && !due(stream, held, then)) break;
        stream->held_first = held->next;
        if (!held->next) stream->held_last = NULL;
        let_go(stream, held);
        if (held->call) {
            pthread_mutex_unlock(&stream->lock);
            held->call(held->argument, fault);
            pthread_mutex_lock(&stream->lock);
        } else {
            free(held->argument);
        }
        free(held);
        count_held(stream, -1);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Checks each stream that holds work and removes those that no longer do. `lock` is held, and released in between. */
static u64 look_at_all(void) {
    u64 then = sim_now() + LONGEST_NS;
    for (struct cuda_stream **each = &holding; *each;) {
        struct cuda_stream *stream = *each;
        pthread_mutex_unlock(&lock);
        step(stream, &then);
        pthread_mutex_lock(&lock);
        while (*each != stream) each = &(*each)->next_holding;
        if (atomic_load(&stream->held)) {
            each = &stream->next_holding;
            continue;
        }
        *each = stream->next_holding;
        stream->holding = false;
        if (stream->abandoned) stream_recycle(stream);
    }
    pthread_cond_broadcast(&gone);
    return then;
}

static void sleep_until(pthread_cond_t *condition, u64 until) {
    struct timespec then = {(time_t)(until / SIM_NS_PER_S), (long)(until % SIM_NS_PER_S)};
    pthread_cond_timedwait(condition, &lock, &then);
}

static void *help(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        news = false;
        u64 then = look_at_all();
        if (!holding)
            while (!news) pthread_cond_wait(&wake, &lock);
        else if (!news)
            sleep_until(&wake, then);
    }
    return NULL;
}

/* The helper blocks all signals, which are meant for the program. */
static CUresult start_helper(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &monotonic);
    pthread_cond_init(&gone, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, help, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) return CUDA_ERROR_OPERATING_SYSTEM;
    pthread_detach(thread);
    started = true;
    return CUDA_SUCCESS;
}

bool stream_abandon(struct cuda_stream *stream) {
    HOLD(lock);
    stream->abandoned = true;
    bool busy = stream->holding;
    return busy;
}

/* ---- holding ----------------------------------------------------------------------------------------------------- */

static CUresult append(struct cuda_stream *stream, const struct held *work) {
    struct held *held = malloc(sizeof *held);
    if (!held) return CUDA_ERROR_OUT_OF_MEMORY;
    *held = *work;
    held->next = NULL;
    pthread_mutex_lock(&lock);
    CUresult result = started ? CUDA_SUCCESS : start_helper();
    pthread_mutex_unlock(&lock);
    if (result) {
        free(held);
        return result;
    }
    pthread_mutex_lock(&stream->lock);
    if (stream->held_last)
        stream->held_last->next = held;
    else
        stream->held_first = held;
    stream->held_last = held;
    count_held(stream, 1);
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_lock(&lock);
    if (!stream->holding) {
        stream->holding = true;
        stream->next_holding = holding;
        holding = stream;
    }
    news = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Waits while `still` returns true, in steps so that faults are noticed. */
static CUresult wait_while(bool (*still)(const void *of), const void *of, const struct device *device) {
    int kept = errno;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    while (still(of) && !(result = device_fault(device))) sleep_until(&gone, sim_now() + LONGEST_NS);
    pthread_mutex_unlock(&lock);
    errno = kept;
    return result;
}

static bool too_much(const void *stream) { return ((const struct cuda_stream *)stream)->held >= STREAM_QUEUE; }
static bool holds(const void *stream) { return stream_holds(stream); }
static bool unknown(const void *mark) { return !((const struct mark *)mark)->known; }

CUresult stream_settle(struct cuda_stream *stream) {
    if (!stream_holds(stream)) return CUDA_SUCCESS;
    return wait_while(holds, stream, stream->context->device);
}

CUresult mark_settle(struct mark *mark) {
    if (mark->known) return CUDA_SUCCESS;
    return wait_while(unknown, mark, mark->device);
}

/* `stream` waits for what `other` holds now. */
static CUresult wait_for(struct cuda_stream *stream, struct cuda_stream *other) {
    struct mark *mark = mark_new(other->context->device, false, 0);
    if (!mark) return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(append(other, &(struct held){.kind = HELD_MARK, .mark = mark_keep(mark)}));
    return append(stream, &(struct held){.kind = HELD_WAIT, .mark = mark});
}

/* Blocking streams wait for what the legacy stream holds, and vice versa. */
static CUresult wait_for_others(struct cuda_stream *stream) {
    struct cuda_context *context = stream->context;
    if (stream->non_blocking) return CUDA_SUCCESS;
    if (!stream->legacy) return context->legacy->held ? wait_for(stream, context->legacy) : CUDA_SUCCESS;
    if (!context->blocking_held) return CUDA_SUCCESS;
    struct cuda_stream *others[64];
    u32 count = 0;
    pthread_mutex_lock(&driver_lock);
    for (struct cuda_stream *each = context->streams; each && count < 64; each = each->next)
        if (!each->legacy && !each->non_blocking && each->held) others[count++] = each;
    pthread_mutex_unlock(&driver_lock);
    CUresult result = CUDA_SUCCESS;
    for (u32 i = 0; i < count && !result; i++) result = wait_for(stream, others[i]);
    return result;
}

CUresult stream_hold(struct cuda_stream *stream, const struct held *work) {
    CUresult result = CUDA_SUCCESS;
    if (too_much(stream)) result = wait_while(too_much, stream, stream->context->device);
    if (!result) result = wait_for_others(stream);
    return result ? result : append(stream, work);
}

CUresult stream_link(struct cuda_stream *stream, enum sim_way way, u64 duration_ns) {
    return stream_hold(stream, &(struct held){.kind = HELD_LINK, .way = way, .duration_ns = duration_ns});
}

CUresult stream_mark(struct cuda_stream *stream, struct cuda_event *event, struct mark **mark) {
    *mark = mark_new(stream->context->device, false, 0);
    if (!*mark) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = stream_hold(stream, &(struct held){.kind = HELD_MARK, .mark = mark_keep(*mark), .event = event});
    if (result) *mark = NULL;
    return result;
}
