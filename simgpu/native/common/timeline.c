#include "timeline.h"

enum { SLOT_BITS = 16, SLOT_MASK = (1 << SLOT_BITS) - 1 };

/* Work that rows have published and not yet received. */
struct backlog {
    u64 runnable; /* bit n: row n has work */
    u64 published[SIM_ROWS];
    u64 slice;
};

static u64 least(u64 a, u64 b) { return a < b ? a : b; }

/* ---- the shared words ------------------------------------------------------------------------------------------- *
 * A slot may be rewritten by its owner while others still read it, so each word is copied atomically; rereading
 * `current` afterwards shows whether the words are consistent. Other processes may have written anything: numbers that
 * become indices are clamped here. */

static void read_words(void *to, const void *shared, size_t bytes) {
    for (size_t n = 0; n < bytes / sizeof(u64); n++)
        ((u64 *)to)[n] = __atomic_load_n((const u64 *)shared + n, __ATOMIC_RELAXED);
}

static void write_words(void *shared, const void *from, size_t bytes) {
    for (size_t n = 0; n < bytes / sizeof(u64); n++)
        __atomic_store_n((u64 *)shared + n, ((const u64 *)from)[n], __ATOMIC_RELAXED);
}

static const struct sim_snapshot *slot_of(const struct sim_timeline *line, u64 current) {
    return &line->slot[(current & SLOT_MASK) % SIM_SLOTS];
}

static bool is_current(const struct sim_timeline *line, u64 current) {
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&line->current, memory_order_relaxed) == current;
}

static u64 read_snapshot(const struct sim_timeline *line, struct sim_snapshot *snapshot) {
    for (;;) {
        u64 current = atomic_load_explicit(&line->current, memory_order_acquire);
        const struct sim_snapshot *slot = slot_of(line, current);
        read_words(snapshot, slot, offsetof(struct sim_snapshot, share));
        snapshot->row %= SIM_ROWS;
        snapshot->rows = (u32)least(snapshot->rows, SIM_ROWS);
        read_words(snapshot->share, slot->share, snapshot->rows * sizeof(struct sim_share));
        if (is_current(line, current)) return current;
    }
}

/* Makes the snapshot current, unless another writer was first. */
static bool publish(struct sim_timeline *line, u32 writer, u64 current, const struct sim_snapshot *snapshot) {
    u64 slot = 2ull * writer;
    if ((current & SLOT_MASK) == slot) slot++;
    atomic_thread_fence(memory_order_release); /* a reader that sees a word of the new state also sees that the old one
                                                * is no longer current */
    write_words(&line->slot[slot], snapshot,
                offsetof(struct sim_snapshot, share) + snapshot->rows * sizeof(struct sim_share));
    u64 next = ((current >> SLOT_BITS) + 1) << SLOT_BITS | slot;
    return atomic_compare_exchange_strong_explicit(&line->current, &current, next, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void cover_rows(struct sim_snapshot *snapshot, u32 rows) {
    for (rows = (u32)least(rows, SIM_ROWS); snapshot->rows < rows; snapshot->rows++)
        snapshot->share[snapshot->rows] = (struct sim_share){0};
}

/* ---- scheduling ------------------------------------------------------------------------------------------------- *
 * The result depends only on the published work, not on when it is computed: a decision is made only when there is
 * time to give, and all its inputs are in the snapshot. */

static void begin_run(struct sim_share *share, u64 wall, u64 local) {
    share->run[share->runs++ % SIM_RUNS] = (struct sim_run){.wall = wall, .local = local};
}

/* Whether the row received all time from the beginning of its last run up to `wall`. */
static bool goes_on(const struct sim_share *share, u64 wall) {
    const struct sim_run *last = &share->run[(share->runs - 1) % SIM_RUNS];
    return share->runs && wall != last->wall && wall - last->wall == share->received - last->local;
}

static void give(struct sim_snapshot *at, struct backlog *backlog, u64 time) {
    struct sim_share *share = &at->share[at->row];
    if (!goes_on(share, at->wall)) begin_run(share, at->wall, share->received);
    share->received += time;
    at->wall += time;
    if (share->received >= backlog->published[at->row]) backlog->runnable &= ~(1ull << at->row);
}

static u64 work_left(const struct sim_snapshot *at, const struct backlog *backlog, u32 row) {
    return backlog->published[row] - at->share[row].received;
}

static bool has_work(const struct backlog *backlog, u32 row) { return backlog->runnable >> row & 1; }

/* The next row in turn that has work; at least one must. */
static u32 next_after(const struct backlog *backlog, u32 row) {
    u64 behind = row + 1 < SIM_ROWS ? backlog->runnable >> (row + 1) << (row + 1) : 0;
    return (u32)__builtin_ctzll(behind ? behind : backlog->runnable);
}

static void take_turn(struct sim_snapshot *at, const struct backlog *backlog) {
    at->row = next_after(backlog, at->row);
    at->slice_end = at->wall + backlog->slice;
}

/* While only one row has work its slice does not end; once it is used up, a newly arrived row runs immediately. */
static void run_alone(struct sim_snapshot *at, struct backlog *backlog, u64 now) {
    if (!has_work(backlog, at->row)) take_turn(at, backlog);
    give(at, backlog, least(work_left(at, backlog, at->row), now - at->wall));
}

/* The number of rounds in which every row with work uses its whole slice and has work left. */
static u64 whole_rounds(const struct sim_snapshot *at, const struct backlog *backlog, u64 now) {
    u64 rounds = (now - at->wall) / ((u64)__builtin_popcountll(backlog->runnable) * backlog->slice);
    for (u64 rest = backlog->runnable; rest && rounds; rest &= rest - 1)
        rounds = least(rounds, (work_left(at, backlog, (u32)__builtin_ctzll(rest)) - 1) / backlog->slice);
    return rounds;
}

/* Equivalent to running that many rounds one by one, including the remembered runs, so hours of work cost as little as
 * a moment. */
static void run_rounds(struct sim_snapshot *at, const struct backlog *backlog, u64 rounds) {
    u64 turns = (u64)__builtin_popcountll(backlog->runnable), round = turns * backlog->slice;
    for (u64 turn = 0; turn < turns; turn++) {
        at->row = next_after(backlog, at->row);
        struct sim_share *share = &at->share[at->row];
        u64 forgotten = rounds - least(rounds, SIM_RUNS), first = at->wall + turn * backlog->slice;
        share->runs += forgotten;
        for (u64 n = forgotten; n < rounds; n++)
            begin_run(share, first + n * round, share->received + n * backlog->slice);
        share->received += rounds * backlog->slice;
    }
    at->wall += rounds * round;
    at->slice_end = at->wall;
}

static void run_in_turns(struct sim_snapshot *at, struct backlog *backlog, u64 now) {
    if (!has_work(backlog, at->row) || at->wall >= at->slice_end) {
        u64 rounds = whole_rounds(at, backlog, now);
        if (rounds) run_rounds(at, backlog, rounds);
        if (at->wall >= now) return;
        take_turn(at, backlog);
    }
    u64 time = least(now, at->slice_end) - at->wall;
    give(at, backlog, least(work_left(at, backlog, at->row), time));
}

static void run_until(struct sim_snapshot *at, struct backlog *backlog, u64 now) {
    while (at->wall < now && backlog->runnable) {
        bool alone = !(backlog->runnable & (backlog->runnable - 1));
        if (alone)
            run_alone(at, backlog, now);
        else
            run_in_turns(at, backlog, now);
    }
    at->wall = now;
}

static void read_backlog(const struct sim_timeline *line, const struct sim_snapshot *at, struct backlog *backlog) {
    u64 slice = atomic_load_explicit(&line->slice_ns, memory_order_relaxed);
    backlog->slice = slice ? least(slice, SIM_NS_PER_S) : 1;
    backlog->runnable = 0;
    if (atomic_load_explicit(&line->frozen, memory_order_acquire)) return;
    for (u32 row = 0; row < at->rows; row++) {
        backlog->published[row] = atomic_load_explicit(&line->row[row].published, memory_order_acquire);
        if (backlog->published[row] > at->share[row].received) backlog->runnable |= 1ull << row;
    }
}

/* ---- interface -------------------------------------------------------------------------------------------------- */

void sim_timeline_begin(struct sim_timeline *line, u64 now) {
    line->slot[2 * SIM_WRITER_DAEMON] = (struct sim_snapshot){.wall = now, .slice_end = now};
    atomic_store_explicit(&line->slice_ns, SIM_SLICE_NS, memory_order_relaxed);
    atomic_store_explicit(&line->current, 2 * SIM_WRITER_DAEMON, memory_order_release);
}

void sim_advance(struct sim_timeline *line, u32 writer, u64 now) {
    struct sim_snapshot at;
    struct backlog backlog;
    u64 current;
    do {
        current = read_snapshot(line, &at);
        if (at.wall >= now) return;
        cover_rows(&at, atomic_load_explicit(&line->rows, memory_order_acquire));
        read_backlog(line, &at, &backlog);
        run_until(&at, &backlog, now);
    } while (!publish(line, writer, current, &at));
}

struct sim_share sim_share_of(const struct sim_timeline *line, u32 row, u64 *wall) {
    for (;;) {
        struct sim_share share = {0};
        struct sim_snapshot head; /* its shares are left uninitialized */
        u64 current = atomic_load_explicit(&line->current, memory_order_acquire);
        const struct sim_snapshot *slot = slot_of(line, current);
        read_words(&head, slot, offsetof(struct sim_snapshot, share));
        if (row < head.rows && row < SIM_ROWS) read_words(&share, &slot->share[row], sizeof share);
        if (!is_current(line, current)) continue;
        if (wall) *wall = head.wall;
        return share;
    }
}

void sim_row_reset(struct sim_timeline *line, u32 row) {
    struct sim_snapshot at;
    u64 current;
    if (atomic_load_explicit(&line->rows, memory_order_relaxed) <= row)
        atomic_store_explicit(&line->rows, row + 1, memory_order_release);
    do {
        current = read_snapshot(line, &at);
        cover_rows(&at, row + 1);
        struct sim_share *share = &at.share[row];
        begin_run(share, at.wall, share->received); /* an empty run: the bound for all earlier times */
        atomic_store_explicit(&line->row[row].published, share->received, memory_order_release);
    } while (!publish(line, SIM_WRITER_DAEMON, current, &at));
}

u64 sim_wall_of(const struct sim_share *share, u64 local) {
    u64 oldest = share->runs - least(share->runs, SIM_RUNS);
    for (u64 n = share->runs; n > oldest; n--) {
        const struct sim_run *run = &share->run[(n - 1) % SIM_RUNS];
        if (run->local < local) return run->wall + (local - run->local); /* at a break, the end before it counts */
    }
    return share->runs ? share->run[oldest % SIM_RUNS].wall : 0;
}

u64 sim_link_take(struct sim_timeline *line, enum sim_way way, u64 now, u64 duration_ns) {
    u64 was = atomic_load(&line->link_free[way]), end;
    do {
        end = (was > now ? was : now) + duration_ns;
    } while (!atomic_compare_exchange_weak(&line->link_free[way], &was, end));
    return end;
}
