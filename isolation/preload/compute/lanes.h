/* Lanes: one for each stream that kernels are launched into, with what is in flight there.
 *
 * A thread that launches finds the stream's lane in a cache of the thread's own; streams and contexts that go make all
 * caches void. Lanes are never given back to the system, so a thread with an old one does no harm.
 *
 * Locks: `lifetimes` is held while the helper calls the driver about a stream or context, and by a thread that is about
 * to end one; a lane's own lock by who opens or closes a batch. First `lifetimes`, then the table, then a lane. A
 * thread inside the driver waits for none of them.
 */
#pragma once

#include "../memory/memory.h"
#include "driver/cuda_abi.h"
#include "gate.h"
#include "places.h"

enum { MOST_LANES = 2048, BATCHES = 16, KINDS = 16, CACHED = 2 };

struct lane;

/* A thread that launches: the lane of the launch from which the driver has not returned; NULL: none. It may wait in
 * there for as long as its kernel runs. Each has a cache line of its own, and only the thread itself writes there. */
struct caller {
    struct lane *_Atomic inside __attribute__((aligned(64)));
    _Atomic int thread; /* the kernel's number of it; 0: none's */
};

/* What the launches of a batch have in common that take about the same time. */
struct kind {
    CUgraphExec graph; /* NULL: kernels */
    uint32_t launches;
    uint64_t cost; /* ns of one; 0: not known */
    uint32_t met;  /* as the graph's when it was put in */
};

/* Launches between two events. What it takes from the first to the second is the time of them; exact where the stream
 * was never idle in between, else too much. */
struct batch {
    CUevent begin, end;
    struct kind kinds[KINDS];
    unsigned many;     /* kinds; of kernels only once it is closed */
    uint32_t launches; /* of all kinds, once it is closed */
    uint64_t expected; /* ns, once it is closed */
    uint64_t since;    /* when it was opened */
    bool has_begin;    /* else it begins with the end of the one before */
};

struct lane {
    /* What a launch touches is in the lane's own cache line, and the lock in another one. */
    const uint64_t *_Atomic word __attribute__((aligned(64))); /* of the line that its gate has */
    struct gate *_Atomic gate;
    _Atomic int32_t credit;    /* so many launches of kernels need not look again */
    _Atomic uint32_t launched; /* launches that the driver has, modulo 2^32 */
    CUgraphExec _Atomic graph; /* and so many launches of that graph: */
    _Atomic int32_t graph_credit;
    _Atomic uint32_t inside; /* launches the long way from which the driver has not returned */
    CUstream stream;         /* never NULL */
    CUcontext context;
    const void *thread; /* whose per-thread stream it is */
    _Atomic bool used;

    struct os_lock lock; /* of what follows */
    struct batch batches[BATCHES];
    unsigned first, count;
    CUevent last_end;      /* of the batch that was done last */
    uint64_t last_done;    /* when it was found done */
    uint32_t closed;       /* `launched` when the last batch was closed */
    int32_t granted;       /* `graph_credit` when it was last looked at */
    uint64_t budget;       /* ns that the open batch may come to */
    bool is_open;          /* there may be launches since */
    bool has_no_events;    /* the driver gives none: what is in flight can't be known */
    uint64_t cost;         /* ns of a kernel; 0: not known */
    uint32_t proved; /* kernels of the last batch whose time is known */
    uint32_t unseen; /* as the gate's when the batches were begun */

    /* Under `lifetimes`. */
    CUevent drain;
    uint32_t recorded, drained; /* `launched` when `drain` was recorded, and up to where all is done */
    bool gone;                  /* the stream is destroyed */
};

extern HIDDEN struct os_lock lifetimes;

/* ---- the thread's cache: a few bytes, as they are taken from every thread of every program ----------------------- */

struct lane_cache {
    uint32_t serial;
    struct caller *caller; /* who has none remembers no lane */
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

/* A stream is never NULL here: an empty place has none. */
static inline struct lane *lane_cached(CUstream stream) {
    const struct lane_place *places = lane_cache.places;
    if (lane_cache.serial != atomic_load_explicit(&lanes_serial, memory_order_relaxed)) return NULL;
    return places[0].stream == stream ? places[0].lane : places[1].stream == stream ? places[1].lane : NULL;
}

static inline bool is_spent(const _Atomic int32_t *credit) {
    return atomic_load_explicit(credit, memory_order_relaxed) <= 0;
}

/* A count that two threads change at once may lose one: then a batch has one launch more. */
static inline bool spend(_Atomic int32_t *credit) {
    const int32_t left = atomic_load_explicit(credit, memory_order_relaxed);
    if (left <= 0) return false;
    atomic_store_explicit(credit, left - 1, memory_order_relaxed);
    return true;
}

/* Where a launch of this graph, or of a kernel, finds its credit; NULL: it has none. */
static inline _Atomic int32_t *credit_of(struct lane *lane, CUgraphExec graph) {
    if (!graph) return &lane->credit;
    return atomic_load_explicit(&lane->graph, memory_order_relaxed) == graph ? &lane->graph_credit : NULL;
}

static inline bool lane_spend(struct lane *lane, CUgraphExec graph) {
    _Atomic int32_t *const credit = credit_of(lane, graph);
    return credit && spend(credit);
}

static inline bool is_default(CUstream stream) { return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

/* The handle that a stream has for every thread; `per_thread`: which default stream NULL is. */
static inline CUstream stream_named(CUstream stream, bool per_thread) {
    return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* This thread has another current context: its default streams are others. */
static inline void lanes_switch(void) {
    for (unsigned n = 0; n < CACHED; n++)
        if (is_default(lane_cache.places[n].stream)) lane_cache.places[n].stream = NULL;
}

/* All threads' caches are void: a gate has another line, a stream or context is gone, or a stream captures. */
HIDDEN void lanes_void(void);

/* The lane of a stream, made if need be; a default one's in the context that is current by the driver's word. NULL:
 * there is no context, or no room. */
HIDDEN struct lane *lane_of(CUstream stream, unsigned *card);

/* ---- who is inside the driver: callers.c ------------------------------------------------------------------------- */

/* This thread's place; NULL: all are taken. */
HIDDEN struct caller *caller_here(void);
/* Calls `each` for the lane of every launch the short way from which the driver has not returned. */
HIDDEN void callers_each(void (*each)(struct lane *lane, void *argument), void *argument);

/* ---- what is known of streams ----------------------------------------------------------------------------------- */

/* A stream was made in the current context. */
HIDDEN void lane_made(CUstream stream);
/* It is about to be destroyed. */
HIDDEN void lane_ends(CUstream stream);

/* Calls `each` for every lane of a card. */
HIDDEN void lanes_each(unsigned card, void (*each)(struct lane *lane, void *argument), void *argument);

/* ---- captures: capture.c ---------------------------------------------------------------------------------------- */

extern HIDDEN _Atomic uint32_t captures; /* that may be under way; while there are none the driver is not asked */

/* Whether launches into it are written down instead of done. */
HIDDEN bool is_capturing(CUstream stream);
/* Whether an event may be recorded there now without any capture noticing; the stream's context is current. */
HIDDEN bool may_record(CUstream stream);
/* Whether the launch that comes is written down. Then no capture ends until capture_leave. */
HIDDEN bool capture_enter(CUstream stream);
HIDDEN void capture_leave(void);
/* Around the driver's call that begins a capture; the second gives its result back. */
HIDDEN void capture_begins(void);
HIDDEN CUresult capture_begun(CUresult result, CUstream stream);
/* The driver's call by which a stream may join a capture. */
HIDDEN CUresult capture_join(CUstream stream, CUevent event, unsigned flags,
                             CUresult (*call)(CUstream, CUevent, unsigned));
/* The driver's call that ends one; `named`: as stream_named says. */
HIDDEN CUresult capture_end(CUstream stream, CUgraph *graph, CUstream named, CUresult (*call)(CUstream, CUgraph *));
/* Around the driver's call that destroys a stream. */
HIDDEN void capture_stream_ends(CUstream stream);
HIDDEN void capture_stream_ended(void);
/* What captured in a context that is gone; under `lifetimes`. */
HIDDEN void capture_context_ended(CUcontext context);

/* ---- windows: window.c ------------------------------------------------------------------------------------------ */

/* Waits until something may be added to the lane, and takes the credit for one launch. False: the gate is no longer
 * open by `word`. */
HIDDEN bool window_open(struct lane *lane, uint64_t word, CUgraphExec graph);
/* The credit is used up: an event ends the batch. */
HIDDEN void window_close(struct lane *lane);

/* The lane is free: its events go, or are gone with the context. */
HIDDEN void window_drop(struct lane *lane, bool with_context);

/* Pushes the lane's context; false: it can't be. */
HIDDEN bool lane_context_push(const struct lane *lane);
HIDDEN void lane_context_pop(void);

/* ---- events that stand for all that a lane was given: events.c; all under `lifetimes` ------------------------------
 */

/* There is one now, there can't be one yet, or there is nothing left that could run. */
enum standing { STANDS, NOT_YET, LOST };
HIDDEN enum standing lane_record(struct lane *lane);
/* One in every lane that has work none stands for, as long as there can be. */
HIDDEN void lanes_stand(void);
/* It was given what was not counted, or all of a card's were: what is recorded there stands for nothing. */
HIDDEN void lane_suspect(struct lane *lane);
HIDDEN void lanes_suspect(unsigned card);

/* Whether nothing is to be done with it, as its context is about to end. */
HIDDEN bool lane_is_ending(const struct lane *lane);
/* A lane of a destroyed stream whose work is done goes, and one that is lost. */
HIDDEN void lane_free_if_gone(struct lane *lane);
HIDDEN void lane_free_lost(struct lane *lane);

/* ---- what launches of graphs take: batches.c --------------------------------------------------------------------- */

/* The executable is gone, or another one from now on: what its launches cost is forgotten. */
HIDDEN void cost_forget(CUgraphExec graph);

/* ---- contexts, for their hooks ---------------------------------------------------------------------------------- */

/* This thread has made a context, which is current now or not. */
HIDDEN void lanes_context_made(unsigned card, CUcontext context);
/* Around the driver's call that may end a context: nothing of ours is done in it in between. */
HIDDEN void lanes_context_ends(CUcontext context);
HIDDEN void lanes_context_ended(CUcontext context, bool gone);

/* ---- as parts of the session ------------------------------------------------------------------------------------ */

HIDDEN void lanes_forget(void);
HIDDEN void callers_forget(void);
HIDDEN void captures_forget(void);
HIDDEN void costs_forget(void);
/* The helper of drain.c: the listener's thread looks after leases. */
HIDDEN bool drain_confirm(uint64_t unused);
HIDDEN void drain_forget(void);
HIDDEN void drain_listening(void);
HIDDEN uint64_t drain_tick(void);
