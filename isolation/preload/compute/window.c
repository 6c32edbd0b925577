/* How much may be in flight: about a millisecond of the card's time in each stream, and nothing that ends after the
 * deadline, but always one launch. So the container that is to have the card next waits no longer than that.
 *
 * Launches go in batches, each enclosed by events. How long the driver says a batch took makes the estimate of how long
 * the next takes, and so how many launches a batch may have. Only between batches is there any work for us.
 */
#include "lanes.h"

REAL_CALL(cuEventCreate, CUevent *event, unsigned flags);
REAL_CALL(cuEventRecord, CUevent event, CUstream stream);
REAL_CALL(cuEventQuery, CUevent event);
REAL_CALL(cuEventElapsedTime, float *ms, CUevent from, CUevent to);
REAL_CALL(cuEventDestroy_v2, CUevent event);

enum { MOST_CREDIT = 256, PARTS = 4 };
enum { MOST_IN_FLIGHT = BATCHES - 1 }; /* the end of what was done last begins what is done next, so it is kept */

#define WINDOW_NS (1ull * OS_MS)
#define FREE_WINDOW_NS (50ull * OS_MS) /* no other process is there, but one may come */
#define SHORT_NS (50 * 1000ull)        /* a driver's whole queue of such launches is no more than that */
#define SPIN_NS (30 * 1000ull)      /* so long a wait is without sleep, which takes longer than it is told */
#define NAP_NS (50 * 1000ull)
#define PATIENCE_NS (100ull * OS_MS) /* at least, and several times as long as was expected */

/* ---- what launches take of the card's time ------------------------------------------------------------------------
 */

static struct table graphs; /* entry.bytes: nanoseconds of one launch */

/* One that was wrong by much is right after a few. */
static uint64_t cost_mixed(uint64_t before, uint64_t sample) {
    if (!sample) sample = 1;
    return before ? before + sample / 4 - before / 4 : sample;
}

static uint64_t cost_of(CUgraphExec graph) {
    struct entry entry;
    return table_get(&graphs, (uint64_t)graph, &entry) ? entry.bytes : 0;
}

/* Without room for it a graph costs what it did the first time. */
static void cost_learn(CUgraphExec graph, uint64_t ns) {
    struct entry entry = {.key = (uint64_t)graph, .times = 1}, before;
    entry.bytes = cost_mixed(cost_of(graph), ns);
    table_put(&graphs, &entry, &before);
}

void cost_forget(CUgraphExec graph) {
    struct entry entry;
    if (!table_is_empty(&graphs)) table_take(&graphs, (uint64_t)graph, &entry);
}

void costs_forget(void) { table_forget(&graphs); }

/* ---- events ----------------------------------------------------------------------------------------------------- */

static bool record(struct lane *lane, CUevent *event) {
    if (!may_record(lane->stream)) return false;
    if (!*event && lane_context_push(lane)) {
        if (DRIVER(REAL(cuEventCreate)(event, 0)) != CUDA_SUCCESS) *event = NULL;
        lane->has_no_events = !*event;
        lane_context_pop();
    }
    return *event && DRIVER(REAL(cuEventRecord)(*event, lane->stream)) == CUDA_SUCCESS;
}

static CUresult ask(CUevent event) {
    const int mode = unnoticed_begin();
    const CUresult result = DRIVER(REAL(cuEventQuery)(event));
    unnoticed_end(mode);
    return result;
}

/* 0: not known. */
static uint64_t between(CUevent from, CUevent to) {
    float ms = 0;
    const int mode = unnoticed_begin();
    const CUresult result = from && to ? DRIVER(REAL(cuEventElapsedTime)(&ms, from, to)) : CUDA_ERROR_INVALID_HANDLE;
    unnoticed_end(mode);
    return result == CUDA_SUCCESS && ms >= 0 ? (uint64_t)((double)ms * OS_MS) + 1 : 0;
}

/* ---- batches; under the lane's lock ----------------------------------------------------------------------------- */

static struct batch *nth(struct lane *lane, unsigned n) { return &lane->batches[(lane->first + n) % BATCHES]; }

static void learn(struct lane *lane, const struct batch *batch) {
    const uint64_t took = between(batch->has_begin ? batch->begin : lane->last_end, batch->end);
    if (!took || !batch->launches) return;
    lane->proved = batch->launches;
    if (batch->graph)
        cost_learn(batch->graph, took);
    else
        lane->cost = cost_mixed(lane->cost, took / batch->launches);
}

/* Those that are done. Where the driver has no answer it has none for the others either. */
static void reap(struct lane *lane, uint64_t now) {
    while (lane->count) {
        const struct batch *oldest = nth(lane, 0);
        const CUresult result = ask(oldest->end);
        if (result == CUDA_ERROR_NOT_READY) return;
        if (result == CUDA_SUCCESS) learn(lane, oldest);
        lane->last_done = now;
        lane->last_end = result == CUDA_SUCCESS ? oldest->end : NULL;
        lane->first = (lane->first + 1) % BATCHES;
        lane->count--;
    }
}

static void close_open(struct lane *lane) {
    const uint32_t launched = atomic_load_explicit(&lane->launched, memory_order_relaxed);
    struct batch *batch = nth(lane, lane->count);
    if (!lane->is_open || launched == lane->closed) return;
    batch->launches = launched - lane->closed;
    batch->graph = lane->opened_for;
    batch->expected = batch->graph ? cost_of(batch->graph) : lane->cost * batch->launches;
    lane->closed = launched;
    lane->is_open = false;
    if (record(lane, &batch->end)) lane->count++;
}

/* The next batch's time begins where the last one's ends, or here. */
static void open_next(struct lane *lane, uint64_t now, CUgraphExec graph) {
    struct batch *batch = nth(lane, lane->count);
    batch->since = now;
    batch->has_begin = !lane->count && record(lane, &batch->begin);
    if (!lane->count && !batch->has_begin) lane->last_end = NULL;
    lane->opened_for = graph;
    lane->closed = atomic_load_explicit(&lane->launched, memory_order_relaxed);
    lane->is_open = true;
}

/* ---- how many --------------------------------------------------------------------------------------------------- */

struct flight {
    uint64_t ns;
    uint32_t launches;
};

/* What the oldest is known to take by now, where that is much more than was expected; 0: it is not. */
static uint64_t excess(struct lane *lane, uint64_t now) {
    const struct batch *oldest = nth(lane, 0);
    const uint64_t began = oldest->since > lane->last_done ? oldest->since : lane->last_done;
    return lane->count && now > began + 4 * oldest->expected + WINDOW_NS ? now - began : 0;
}

/* Kernels that have become longer are noticed while the first of them runs. */
static uint64_t cost_by_now(struct lane *lane, uint64_t now) {
    const uint64_t each = excess(lane, now) / (nth(lane, 0)->launches + !nth(lane, 0)->launches);
    return each > lane->cost ? each : lane->cost;
}

static struct flight in_flight(struct lane *lane, uint64_t now) {
    struct flight all = {excess(lane, now), 0};
    for (unsigned n = 0; n < lane->count; n++) {
        all.ns += nth(lane, n)->expected;
        all.launches += nth(lane, n)->launches;
    }
    return all;
}

/* How many launches of that cost may be added: two may always be in flight so that the card has no pause between them,
 * but only one where a second would end after the deadline. Of an unknown cost one by one. */
static uint32_t room_for(const struct flight *flight, uint64_t cost, uint64_t left, uint64_t most) {
    const uint64_t window = left < most ? left : most;
    const uint32_t least = left < 2 * cost ? 1 : 2;
    if (cost && flight->ns + cost <= window) {
        const uint64_t more = (window - flight->ns) / cost, part = window / cost / PARTS + 1;
        const uint64_t fits = more < part ? more : part;
        return fits < MOST_CREDIT ? (uint32_t)fits : MOST_CREDIT;
    }
    return flight->launches < least ? 1 : 0;
}

/* A stream that waits for the host is no reason to stop the host. */
static uint64_t patience(struct lane *lane) {
    const uint64_t expected = lane->count ? 4 * nth(lane, 0)->expected : 0;
    return expected > PATIENCE_NS ? expected : PATIENCE_NS;
}

/* Who comes after a broker that is away is to find no more than a lease would leave. */
static uint64_t window_of(const struct gate *gate, uint64_t word) {
    return word_state(word) == WIRE_FREE && !atomic_load(&gate->away_since) ? FREE_WINDOW_NS : WINDOW_NS;
}

/* What went through unseen is in no batch, and an event after it is none of a batch's. */
static void forget_unseen(struct lane *lane) {
    const uint32_t unseen = atomic_load(&lane->gate->unseen);
    if (lane->unseen == unseen) return;
    lane->unseen = unseen;
    lane->count = 0;
    lane->is_open = false;
}

/* What few have shown is believed of a few more. */
static uint32_t slowly(const struct lane *lane, const struct flight *flight, uint32_t room) {
    const uint32_t more = 2 * lane->proved + 1, all = 4 * lane->proved + 2;
    if (flight->launches >= all) return 0;
    return room < more ? room : more;
}

static bool add(struct lane *lane, uint64_t word, uint64_t now, CUgraphExec graph, uint64_t waited) {
    forget_unseen(lane);
    close_open(lane);
    reap(lane, now);
    const struct flight flight = in_flight(lane, now);
    const uint64_t cost = graph ? cost_of(graph) : cost_by_now(lane, now);
    uint32_t room = room_for(&flight, cost, word_deadline(word) - now, window_of(lane->gate, word));
    room = slowly(lane, &flight, room);
    if (lane->has_no_events) room = MOST_CREDIT;
    if ((room && graph) || (!room && waited > patience(lane))) room = 1;
    if (word_state(word) == WIRE_FREE && cost) gate_found(lane->gate, cost < SHORT_NS, now);
    if (!room || lane->count == MOST_IN_FLIGHT) return false;
    open_next(lane, now, graph);
    atomic_store_explicit(&lane->credit, (int32_t)room, memory_order_relaxed);
    return true;
}

/* What is not metered does not wait. */
static bool add_unmetered(struct lane *lane) {
    if (atomic_load(&lane->gate->kind) != GATE_UNMETERED) return false;
    atomic_store_explicit(&lane->credit, MOST_CREDIT, memory_order_relaxed);
    return true;
}

static void wait_a_little(uint64_t since, uint64_t now) {
    if (now - since < SPIN_NS) return;
    os_sleep(NAP_NS);
}

static bool has_credit(const struct lane *lane) {
    return atomic_load_explicit(&lane->credit, memory_order_relaxed) > 0;
}

bool window_open(struct lane *lane, uint64_t word, CUgraphExec graph) {
    const uint64_t since = os_now();
    for (uint64_t now = since;; now = os_now()) {
        if (gate_word(lane->gate) != word || !word_is_open(word, now)) {
            gate_shut(lane->gate, word);
            return false;
        }
        os_lock(&lane->lock);
        const bool opened =
            (has_credit(lane) && !graph) || add_unmetered(lane) || add(lane, word, now, graph, now - since);
        if (opened) lane_spend(lane);
        os_unlock(&lane->lock);
        if (opened) return true;
        wait_a_little(since, now);
    }
}

void window_close(struct lane *lane) {
    KEEP_ERRNO;
    os_lock(&lane->lock);
    if (!has_credit(lane)) close_open(lane);
    os_unlock(&lane->lock);
}

static void destroy(CUevent *event) {
    if (*event) DRIVER(REAL(cuEventDestroy_v2)(*event));
    *event = NULL;
}

void window_drop(struct lane *lane, bool with_context) {
    os_lock(&lane->lock);
    for (unsigned n = 0; n < BATCHES && !with_context; n++) {
        destroy(&lane->batches[n].begin);
        destroy(&lane->batches[n].end);
    }
    if (!with_context) destroy(&lane->drain);
    lane->count = 0;
    lane->last_end = NULL;
    os_unlock(&lane->lock);
}
