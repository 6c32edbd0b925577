/* How the time of one card is divided among the processes that have work on it.
 *
 * A process publishes the end of its work in its own time ("local"); the card grants it that time, in slices while
 * others have work too. No process drives the card: each one that reads it computes its current state and publishes
 * that by one compare-and-swap. There is no lock and no partial update to repair, so a process that is killed or
 * stopped anywhere harms no other. The words are in a memory file that simgpud hands to every process that computes.
 *
 * Within a process streams overlap: an operation starts at max(end of its stream, ends it waits for, received), and the
 * row's `published` is the maximum end. So a row is busy in the single interval (received, published].
 */
#pragma once

#include "words.h"

enum {
    SIM_ROWS = 64,                 /* processes that have a context on one card */
    SIM_RUNS = 8,                  /* latest runs of each row kept in a snapshot */
    SIM_SLOTS = 2 * SIM_ROWS + 2,  /* two per writer: one may be current while the other is written */
    SIM_WRITER_DAEMON = SIM_ROWS,  /* simgpud's writer number; a process's is its row */
};

#define SIM_SLICE_NS 2000000ull    /* the default time slice of real cards */
/* The link between card and host carries both directions at once, and in each direction one copy at a time, across all
 * processes. */
enum sim_way { SIM_TO_CARD, SIM_TO_HOST, SIM_WAYS };

#define SIM_NEVER (UINT64_MAX / 4) /* duration of a kernel that never ends */

/* From wall time `wall` on, the row received time without interruption, beginning at `local`. */
struct sim_run {
    u64 wall, local;
};

struct sim_share {
    u64 received; /* local time granted to this row */
    u64 runs; /* number of runs ever begun; run[n % SIM_RUNS] is the n-th */
    struct sim_run run[SIM_RUNS];
};

struct sim_snapshot {
    u64 wall; /* everything earlier is decided */
    u64 slice_end;
    u32 row; /* the running row, or the last one */
    u32 rows; /* valid elements of `share` */
    struct sim_share share[SIM_ROWS];
};

struct sim_row {
    _Alignas(64) _Atomic u64 published; /* written by its process only; by simgpud once that is dead or has failed */
};

struct sim_timeline {
    _Alignas(64) _Atomic u64 current; /* version << 16 | slot */
    _Atomic u32 rows; /* one more than the highest row ever used; written only by simgpud */
    _Atomic u32 frozen; /* the card is lost: time passes, but no row receives any */
    _Atomic u64 slice_ns;
    _Atomic u64 link_free[SIM_WAYS]; /* wall time from which the link is idle */
    struct sim_row row[SIM_ROWS];
    struct sim_snapshot slot[SIM_SLOTS];
};

/* Starts a zeroed timeline at wall time `now`. Only for simgpud, before it hands the file out. */
void sim_timeline_begin(struct sim_timeline *line, u64 now);

/* Advances the card to wall time `now`. `writer` is the caller's row or SIM_WRITER_DAEMON; a process calls it from one
 * thread at a time. Lock-free: returns once some process, not necessarily the caller, has advanced it. */
void sim_advance(struct sim_timeline *line, u32 writer, u64 now);

/* A consistent copy of what is decided for one row. Thread-safe and lock-free. */
struct sim_share sim_share_of(const struct sim_timeline *line, u32 row, u64 *wall);

/* Assigns a row to a new process, or withdraws it from one that is dead or has failed: what it published beyond what it
 * received is dropped. Only for simgpud. */
void sim_row_reset(struct sim_timeline *line, u32 row);

/* Occupies the link for `duration_ns`, after all earlier use; returns the wall time of the end. */
u64 sim_link_take(struct sim_timeline *line, enum sim_way way, u64 now, u64 duration_ns);

/* The wall time at which local time `local` was reached: exact within the runs in `share`, otherwise the nearest
 * bound. */
u64 sim_wall_of(const struct sim_share *share, u64 local);
