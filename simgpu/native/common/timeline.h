/* How one card's time passes between the processes that have work on it.
 *
 * A process publishes the end of its work in time of its own ("local"); the card gives it that time, in slices while
 * others have work too. No process runs the card: each one that looks computes where it is now and publishes that by
 * one compare-and-swap. There is no lock and no order to repair, so a process that is killed or stopped anywhere harms
 * no other. The words live in a memory file that simgpud hands to every process that computes.
 *
 * Within a process streams overlap: an operation starts at max(end of its stream, ends it waits for, received) and
 * the row's `published` is the greatest end. Busy is therefore the one interval (received, published].
 */
#pragma once

#include "words.h"

enum {
    SIM_ROWS = 64,                 /* processes that have a context on one card */
    SIM_RUNS = 8,                  /* latest runs that a snapshot remembers of each row */
    SIM_SLOTS = 2 * SIM_ROWS + 2,  /* two for each writer: one may be current while it writes the other */
    SIM_WRITER_DAEMON = SIM_ROWS,  /* simgpud's own number as a writer; a process's is its row */
};

#define SIM_SLICE_NS 2000000ull    /* as real cards slice between contexts by default */
/* The link between card and host carries both ways at once, and one copy after the other each way, of all processes. */
enum sim_way { SIM_TO_CARD, SIM_TO_HOST, SIM_WAYS };

#define SIM_NEVER (UINT64_MAX / 4) /* how long a kernel runs that does not end */

/* Beginning with wall time `wall`, the row received time without a break from `local` on. */
struct sim_run {
    u64 wall, local;
};

struct sim_share {
    u64 received; /* local time that the card has given to this row */
    u64 runs; /* runs that ever began; run[n % SIM_RUNS] is the n-th */
    struct sim_run run[SIM_RUNS];
};

struct sim_snapshot {
    u64 wall; /* everything before is decided */
    u64 slice_end;
    u32 row; /* who runs, or ran last */
    u32 rows; /* how many of `share` count */
    struct sim_share share[SIM_ROWS];
};

struct sim_row {
    _Alignas(64) _Atomic u64 published; /* by its process alone; by simgpud once it is dead or has failed */
};

struct sim_timeline {
    _Alignas(64) _Atomic u64 current; /* version << 16 | slot */
    _Atomic u32 rows; /* one more than the greatest row ever in use; only simgpud writes it */
    _Atomic u32 frozen; /* the card is lost: time passes, but no row receives any */
    _Atomic u64 slice_ns;
    _Atomic u64 link_free[SIM_WAYS]; /* wall time from which on the link has nothing to carry */
    struct sim_row row[SIM_ROWS];
    struct sim_snapshot slot[SIM_SLOTS];
};

/* A fresh, zeroed timeline starts at wall time `now`. Only simgpud, before it hands the file out. */
void sim_timeline_begin(struct sim_timeline *line, u64 now);

/* Brings the card to wall time `now`. `writer` is the caller's row or SIM_WRITER_DAEMON; a process calls it from one
 * thread at a time. Lock-free: returns when a process, not always the caller, has brought it there. */
void sim_advance(struct sim_timeline *line, u32 writer, u64 now);

/* What is decided of one row: a consistent copy. Any thread, never waits for anybody. */
struct sim_share sim_share_of(const struct sim_timeline *line, u32 row, u64 *wall);

/* Gives a row to a new process, or takes it from one that is dead or has failed: what it received counts as all that it
 * published. Only simgpud. */
void sim_row_reset(struct sim_timeline *line, u32 row);

/* Takes the link for so long, after all that was taken of it before; the wall time of the end. */
u64 sim_link_take(struct sim_timeline *line, enum sim_way way, u64 now, u64 duration_ns);

/* When local time `local` was reached, by the runs remembered in `share`: exact within them, else the nearest bound. */
u64 sim_wall_of(const struct sim_share *share, u64 local);
