/* Lanes: one for each stream into which kernels are launched, tracking what is in flight there.
 *
 * A launching thread finds the stream's lane in a thread-local cache; the destruction of a stream or context
 * invalidates all caches. Lanes are never returned to the system, so a thread that uses a stale one does no harm.
 *
 * Locks: `lifetimes` is held while the helper calls the driver about a stream or context, and by a thread that is about
 * to destroy one; a lane's own lock while a batch is opened or closed. Order: `lifetimes`, the table, a lane. A thread
 * inside the driver waits for none of them.
 */
#pragma once

#include "../memory/memory.h"
#include "driver/cuda_abi.h"
#include "gate.h"
#include "places.h"

enum { MOST_LANES = 2048, BATCHES = 16, KINDS = 16, CACHED = 2 };

struct lane;

/* A thread's place: the lane of the launch from which the driver has not returned, or NULL. The thread may stay inside
 * for as long as its kernel runs. Each place has its own cache line, which only its thread writes. */
struct caller {
    struct lane *_Atomic inside __attribute__((aligned(64)));
    _Atomic int thread; /* its kernel thread ID; 0: free */
};

/* Launches of a batch that take about the same time. */
struct kind {
    CUgraphExec graph; /* NULL: kernels */
    uint32_t launches;
    uint64_t cost; /* ns per launch; 0: unknown */
    uint32_t met;  /* the graph's serial when it was added */
};

/* The launches between two events. The time between the events is theirs: exact if the stream was never idle in
 * between, otherwise too long. */
struct batch {
    CUevent begin, end;
    struct kind kinds[KINDS];
    unsigned many;     /* number of kinds; kernels are included only once it is closed */
    uint32_t launches; /* of all kinds; set when it is closed */
    uint64_t expected; /* ns; set when it is closed */
    uint64_t since;    /* when it was opened */
    bool has_begin;    /* otherwise it begins at the end of the previous batch */
};

struct lane {
    /* The fields that a launch touches share the lane's first cache line; the lock is in another one. */
    const uint64_t *_Atomic word __attribute__((aligned(64))); /* in its gate's line */
    struct gate *_Atomic gate;
    _Atomic int32_t credit;    /* kernel launches allowed without another check */
    _Atomic uint32_t launched; /* launches accepted by the driver, modulo 2^32 */
    CUgraphExec _Atomic graph; /* and launches allowed of this graph: */
    _Atomic int32_t graph_credit;
    _Atomic uint32_t inside; /* launches on the slow path from which the driver has not returned */
    CUstream stream;         /* never NULL */
    CUcontext context;
    const void *thread; /* the thread that a per-thread stream belongs to */
    _Atomic bool used;

    struct os_lock lock; /* protects the following fields */
    struct batch batches[BATCHES];
    unsigned first, count;
    CUevent last_end;      /* of the batch completed last */
    uint64_t last_done;    /* when that was found complete */
    uint32_t closed;       /* `launched` when the last batch was closed */
    int32_t granted;       /* `graph_credit` when it was last checked */
    uint64_t budget;       /* ns that the open batch may take */
    bool is_open;          /* there may be launches since */
    bool has_no_events;    /* the driver creates none: what is in flight cannot be known */
    uint64_t cost;         /* ns of a kernel; 0: unknown */
    uint32_t proved; /* kernels of the last batch whose time is known */
    uint32_t unseen; /* the gate's value when the batches were begun */

    /* Under `lifetimes`. */
    CUevent drain;
    uint32_t recorded, drained; /* `launched` when `drain` was recorded, and up to where everything is done */
    _Atomic bool gone;          /* the stream is destroyed */
    _Atomic bool is_ending;     /* the context may be being destroyed: nothing must be done in it */
};

extern HIDDEN struct os_lock lifetimes;

/* ---- the thread's cache: callers.c; kept small, since every thread of every program has one ---------------------- */

struct lane_cache {
    uint32_t serial;
    struct caller *caller; /* NULL: the thread caches no lanes */
    struct lane_place {
        CUstream stream;
        struct lane *lane;
    } places[CACHED];
};
extern HIDDEN __thread struct lane_cache lane_cache __attribute__((tls_model("initial-exec")));
extern HIDDEN _Atomic uint32_t lanes_serial; /* never 0 */

_Static_assert(offsetof(struct lane_cache, serial) == 0 && offsetof(struct lane_cache, places) == CACHE_PLACES,
               "places");
_Static_assert(offsetof(struct lane_cache, caller) == CACHE_CALLER && offsetof(struct caller, inside) == 0, "places");
_Static_assert(sizeof(struct lane_place) == PLACE_BYTES && offsetof(struct lane_place, stream) == 0, "places");
_Static_assert(offsetof(struct lane_place, lane) == PLACE_LANE && CACHED == 2, "places");
_Static_assert(offsetof(struct lane, word) == LANE_WORD && offsetof(struct lane, gate) == LANE_GATE, "places");
_Static_assert(offsetof(struct lane, credit) == LANE_CREDIT && offsetof(struct lane, launched) == LANE_LAUNCHED,
               "places");
_Static_assert(offsetof(struct gate, open) == GATE_OPEN && offsetof(CUlaunchConfig, stream) == CONFIG_STREAM, "places");

/* A stream is never NULL here: that marks an empty place. */
static inline struct lane *lane_cached(CUstream stream) {
    const struct lane_place *places = lane_cache.places;
    if (lane_cache.serial != atomic_load_explicit(&lanes_serial, memory_order_relaxed)) return NULL;
    return places[0].stream == stream ? places[0].lane : places[1].stream == stream ? places[1].lane : NULL;
}

static inline bool is_spent(const _Atomic int32_t *credit) {
    return atomic_load_explicit(credit, memory_order_relaxed) <= 0;
}

/* Two threads that decrement at once may count as one: a batch then has one launch more. */
static inline bool spend(_Atomic int32_t *credit) {
    const int32_t left = atomic_load_explicit(credit, memory_order_relaxed);
    if (left <= 0) return false;
    atomic_store_explicit(credit, left - 1, memory_order_relaxed);
    return true;
}

/* The credit for launches of this graph, or of kernels; NULL: there is none. */
static inline _Atomic int32_t *credit_of(struct lane *lane, CUgraphExec graph) {
    if (!graph) return &lane->credit;
    return atomic_load_explicit(&lane->graph, memory_order_relaxed) == graph ? &lane->graph_credit : NULL;
}

static inline bool lane_spend(struct lane *lane, CUgraphExec graph) {
    _Atomic int32_t *const credit = credit_of(lane, graph);
    return credit && spend(credit);
}

static inline bool is_default(CUstream stream) { return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

/* The handle that denotes the stream in every thread; `per_thread`: which default stream NULL means. */
static inline CUstream stream_named(CUstream stream, bool per_thread) {
    return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* The current context of this thread has changed, and its default streams with it. */
static inline void lanes_switch(void) {
    for (unsigned n = 0; n < CACHED; n++)
        if (is_default(lane_cache.places[n].stream)) lane_cache.places[n].stream = NULL;
}

/* Invalidates all threads' caches: a gate has another line, a stream or context is gone, or a stream captures. */
HIDDEN void lanes_void(void);

/* The lane of a stream, created if necessary; that of a default stream belongs to the driver's current context. NULL:
 * there is no context, or no room. */
HIDDEN struct lane *lane_of(CUstream stream, unsigned *card);

/* The lane of a stream that is no default one; NULL: there is none. */
HIDDEN struct lane *lane_known(CUstream stream);
/* Another stream may have the lane. */
HIDDEN void lane_release(struct lane *lane);

/* ---- threads inside the driver: callers.c ------------------------------------------------------------------------ */

/* This thread's place; NULL: all are taken. */
HIDDEN struct caller *caller_here(void);
/* Calls `each` for the lane of every fast-path launch from which the driver has not returned. */
HIDDEN void callers_each(void (*each)(struct lane *lane, void *argument), void *argument);

/* ---- streams ---------------------------------------------------------------------------------------------------- */

/* A stream was created in the current context. */
HIDDEN void lane_made(CUstream stream);
/* It is about to be destroyed. */
HIDDEN void lane_ends(CUstream stream);

/* Calls `each` for every lane of a card. */
HIDDEN void lanes_each(unsigned card, void (*each)(struct lane *lane, void *argument), void *argument);

/* ---- captures: capture.c ---------------------------------------------------------------------------------------- */

/* Whether launches into the stream are captured. */
HIDDEN bool is_capturing(CUstream stream);
/* Whether the coming launch is captured. If so, no capture ends until capture_leave. */
HIDDEN bool capture_enter(CUstream stream);
HIDDEN void capture_leave(void);
/* Enclose the driver call that begins a capture; the second returns its result. */
HIDDEN void capture_begins(void);
HIDDEN CUresult capture_begun(CUresult result, CUstream stream);
/* Makes the driver call by which a stream may join a capture. */
HIDDEN CUresult capture_join(CUstream stream, CUevent event, unsigned flags,
                             CUresult (*call)(CUstream, CUevent, unsigned));
/* Makes the driver call that ends a capture; `named`: as returned by stream_named. */
HIDDEN CUresult capture_end(CUstream stream, CUgraph *graph, CUstream named, CUresult (*call)(CUstream, CUgraph *));
/* Enclose the driver call that destroys a stream. */
HIDDEN void capture_stream_ends(CUstream stream);
HIDDEN void capture_stream_ended(void);
/* Ends the captures of a context that is gone; under `lifetimes`. */
HIDDEN void capture_context_ended(CUcontext context);

/* ---- windows: window.c ------------------------------------------------------------------------------------------ */

/* Waits until the lane may get another launch, and takes the credit for it. False: the gate is no longer open by
 * `word`. */
HIDDEN bool window_open(struct lane *lane, uint64_t word, CUgraphExec graph);
/* The credit is used up: ends the batch with an event. */
HIDDEN void window_close(struct lane *lane);

/* The lane is no longer used: destroys its events, or drops them if their context is gone. */
HIDDEN void window_drop(struct lane *lane, bool with_context);

/* Makes the lane's context current; false if it cannot. */
HIDDEN bool lane_context_push(const struct lane *lane);
HIDDEN void lane_context_pop(void);

/* ---- events that cover all work given to a lane: events.c; all but the first under `lifetimes` ------------------- */

/* Whether an event may be recorded in the stream now without disturbing a capture; the stream's context is current. */
HIDDEN bool may_record(CUstream stream);

/* An event covers the work now, none can be recorded yet, or nothing is left that could run. */
enum standing { STANDS, NOT_YET, LOST };
HIDDEN enum standing lane_record(struct lane *lane);
/* Records an event in every lane whose work has none, while that is still possible. */
HIDDEN void lanes_stand(void);
/* The lane, or every lane of the card, was given uncounted work: its recorded event covers nothing. */
HIDDEN void lane_suspect(struct lane *lane);
HIDDEN void lanes_suspect(unsigned card);

/* ---- what is destroyed: teardown.c; under `lifetimes` ------------------------------------------------------------ */

/* Free the lane of a destroyed stream whose work is done, and a lane that is lost. */
HIDDEN void lane_free_if_gone(struct lane *lane);
HIDDEN void lane_free_lost(struct lane *lane);

/* ---- cost of graph launches: batches.c --------------------------------------------------------------------------- */

/* The executable is gone or changed: forgets the cost of its launches. */
HIDDEN void cost_forget(CUgraphExec graph);

/* ---- contexts, for their hooks ---------------------------------------------------------------------------------- */

/* This thread has created a context, which may or may not be current. */
HIDDEN void lanes_context_made(unsigned card, CUcontext context);
/* Enclose the driver call that may destroy a context: nothing of ours touches it in between. */
HIDDEN void lanes_context_ends(CUcontext context);
HIDDEN void lanes_context_ended(CUcontext context, bool gone);

/* ---- as parts of the session ------------------------------------------------------------------------------------ */

HIDDEN void lanes_forget(void);
HIDDEN void callers_forget(void);
HIDDEN void captures_forget(void);
HIDDEN void costs_forget(void);
/* The helper of drain.c: the listener's thread drains and closes gates. */
HIDDEN bool drain_confirm(uint64_t unused);
HIDDEN void drain_forget(void);
HIDDEN void drain_listening(void);
HIDDEN uint64_t drain_tick(void);
