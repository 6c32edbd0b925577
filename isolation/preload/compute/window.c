/* How much may be in flight: little more than a millisecond of the card's time in each stream, and nothing that ends
 * after the deadline, but always one launch. So the next container to get the card waits no longer than that. On an
 * unshared card the limit is fifty milliseconds.
 */
#include "window.h"

enum { MOST_CREDIT = 256, PARTS = 4, NAPS = 8 };
enum { MOST_IN_FLIGHT = BATCHES - 1 }; /* the end event of the last completed batch begins the next, so it is kept */

/* Includes the part that may be done but is not yet known to be: a program that waits for each millisecond of work must
 * not wait twice.
 */
#define WINDOW_NS (5ull * OS_MS / 4)
#define FREE_WINDOW_NS (50ull * OS_MS) /* no other process is present, but one may arrive */
#define SHORT_NS (50 * 1000ull) /* a full driver queue of such launches takes no more than the window */
#define SPIN_NS (30 * 1000ull) /* before the first of the shortest naps */
#define NAP_NS (50 * 1000ull) /* minimum, */
#define LONG_NAP_NS (1ull * OS_MS) /* maximum: a part of what is in flight */
#define PATIENCE_NS (100ull * OS_MS) /* minimum; otherwise several times the expected time */

/* ---- what is in flight ------------------------------------------------------------------------------------------- */

struct flight {
    uint64_t ns;
    uint32_t launches;
    uint32_t alike; /* of the requested kind */
    uint32_t unknown; /* of kinds of unknown cost */
};

/* The time that the oldest batch has run so far, if that is much more than expected; otherwise 0. */
static uint64_t excess(struct lane *lane, uint64_t now) {
    const struct batch *oldest = batch_nth(lane, 0);
    const uint64_t began = oldest->since > lane->last_done ? oldest->since : lane->last_done;
    return lane->count && now > began + 4 * oldest->expected + WINDOW_NS ? now - began : 0;
}

static struct flight in_flight(struct lane *lane, uint64_t now, CUgraphExec graph) {
    struct flight all = {.ns = excess(lane, now)};
    for (unsigned n = 0; n < lane->count; n++) {
        const struct batch *batch = batch_nth(lane, n);
        all.ns += batch->expected;
        all.launches += batch->launches;
        for (unsigned k = 0; k < batch->many; k++) {
            if (batch->kinds[k].graph == graph) all.alike += batch->kinds[k].launches;
            if (!batch->kinds[k].cost) all.unknown += batch->kinds[k].launches;
        }
    }
    return all;
}

/* Detects kernels that have become longer while the first of them runs. */
static uint64_t cost_by_now(struct lane *lane, uint64_t now) {
    const struct batch *oldest = batch_nth(lane, 0);
    if (!lane->count || oldest->many != 1 || oldest->kinds[0].graph) return lane->cost;
    const uint64_t each = excess(lane, now) / oldest->launches;
    return each > lane->cost ? each : lane->cost;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* The limits for a launch. */
struct frame {
    uint64_t left; /* ns until the deadline */
    uint64_t window; /* ns that may be in flight */
    bool is_alone; /* on an unshared card */
};

/* While the broker is unavailable no more may be in flight than in a time slice, so that the next process waits no
 * longer than after one. */
static struct frame frame_of(const struct gate *gate, uint64_t word, uint64_t now) {
    const bool is_alone = word_state(word) == WIRE_FREE && !atomic_load(&gate->away_since);
    const uint64_t left = word_deadline(word) - now, most = is_alone ? FREE_WINDOW_NS : WINDOW_NS;
    return (struct frame){.left = left, .window = left < most ? left : most, .is_alone = is_alone};
}

/* How long the next batch may take: a part of the window, so that its end is soon known. */
static uint64_t budget_for(const struct flight *flight, uint64_t cost, const struct frame *frame) {
    const uint64_t more = frame->window > flight->ns ? frame->window - flight->ns : 0;
    const uint64_t part = frame->window / PARTS + cost;
    return more < part ? more : part;
}

/* How many launches of that cost may be added. Two may always be in flight, so that the card does not pause between
 * them; only one if a second would end after the deadline. Launches of unknown cost are added one by one. */
static uint32_t room_for(const struct flight *flight, uint64_t cost, const struct frame *frame) {
    const uint32_t least = frame->left < 2 * cost ? 1 : 2;
    const uint64_t fits = cost ? budget_for(flight, cost, frame) / cost : 0;
    if (fits) return fits < MOST_CREDIT ? (uint32_t)fits : MOST_CREDIT;
    if (!cost && frame->is_alone) return flight->unknown < least && flight->ns < frame->window;
    return flight->launches < least;
}

/* Limits growth while an estimate rests on few launches. */
static uint32_t slowly(uint32_t proved, uint32_t alike, uint32_t room) {
    const uint32_t more = 2 * proved + 1, all = 4 * proved + 2;
    if (alike >= all) return 0;
    return room < more ? room : more;
}

/* How long a stream may make no progress before one more launch is let through: it may be waiting for this very host
 * thread. */
static uint64_t patience(struct lane *lane) {
    const uint64_t expected = lane->count ? 4 * batch_nth(lane, 0)->expected : 0;
    return expected > PATIENCE_NS ? expected : PATIENCE_NS;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

/* Adds launches of another kind to the open batch, if that has time left for them. */
static bool join(struct lane *lane, CUgraphExec graph) {
    if (!lane->is_open || lane->has_no_events) return false;
    const struct rate rate = batch_rate(lane, graph);
    const uint64_t expected = batch_expected(lane);
    if (!rate.cost || expected + rate.cost > lane->budget) return false;
    const struct kind *kind = graph ? batch_kind(lane, graph) : NULL;
    if (graph && !kind) return false;
    const uint64_t fits = (lane->budget - expected) / rate.cost;
    const uint32_t most = slowly(rate.proved, 0, MOST_CREDIT), before = kind ? kind->launches : 0;
    if (before >= most) return false;
    batch_grant(lane, graph, fits < most - before ? (uint32_t)fits : most - before);
    return true;
}

/* *flying: the expected time of what is in flight. */
static bool add(struct lane *lane, uint64_t word, uint64_t now, CUgraphExec graph, uint64_t waited, uint64_t *flying) {
    batch_forget_unseen(lane);
    if (join(lane, graph)) return true;
    batch_close(lane);
    batch_reap(lane, now);
    const struct flight flight = in_flight(lane, now, graph);
    const struct rate rate = batch_rate(lane, graph);
    const uint64_t cost = graph ? rate.cost : cost_by_now(lane, now);
    const struct frame frame = frame_of(lane->gate, word, now);
    uint32_t room = slowly(rate.proved, flight.alike, room_for(&flight, cost, &frame));
    if (lane->has_no_events) room = MOST_CREDIT;
    if (!room && waited > patience(lane)) room = 1;
    if (word_state(word) == WIRE_FREE && cost) gate_found(lane->gate, cost < SHORT_NS, now);
    *flying = flight.ns;
    if (!room || lane->count == MOST_IN_FLIGHT) return false;
    batch_open(lane, now, cost ? budget_for(&flight, cost, &frame) : 0);
    batch_grant(lane, graph, room);
    return true;
}

/* Launches on an unmetered card do not wait. */
static bool add_unmetered(struct lane *lane, CUgraphExec graph) {
    if (atomic_load(&lane->gate->kind) != GATE_UNMETERED) return false;
    batch_grant(lane, graph, MOST_CREDIT);
    return true;
}

/* A sleep takes longer than requested, so a short one is preceded by spinning. Never sleeps past the deadline: then
 * this thread must report that it waits. */
static void wait_a_little(uint64_t since, uint64_t now, uint64_t flying, uint64_t deadline) {
    const uint64_t part = flying / NAPS, nap = part < NAP_NS ? NAP_NS : part > LONG_NAP_NS ? LONG_NAP_NS : part;
    if (part < NAP_NS / 2 && now - since < SPIN_NS) return;
    os_sleep(deadline - now < nap ? deadline - now : nap);
}

static bool spend_or_add(struct lane *lane, uint64_t word, uint64_t now, CUgraphExec graph, uint64_t waited,
                         uint64_t *flying) {
    os_lock(&lane->lock);
    bool spent = lane_spend(lane, graph);
    if (!spent && (add_unmetered(lane, graph) || add(lane, word, now, graph, waited, flying)))
        spent = lane_spend(lane, graph);
    os_unlock(&lane->lock);
    return spent;
}

/* What is in flight may end while this thread sleeps. The process is not idle then: it counts as one that waits. */
bool window_open(struct lane *lane, uint64_t word, CUgraphExec graph) {
    struct gate *waits_at = NULL;
    const uint64_t since = os_now();
    bool opened = false;
    for (uint64_t now = since, flying = 0; gate_word(lane->gate) == word && word_is_open(word, now); now = os_now()) {
        opened = spend_or_add(lane, word, now, graph, now - since, &flying);
        if (opened) break;
        if (!waits_at) atomic_fetch_add(&(waits_at = lane->gate)->blocked, 1);
        wait_a_little(since, now, flying, word_deadline(word));
    }
    if (!opened) gate_shut(lane->gate, word);
    if (waits_at) atomic_fetch_sub(&waits_at->blocked, 1);
    return opened;
}

void window_close(struct lane *lane) {
    KEEP_ERRNO;
    os_lock(&lane->lock);
    if (is_spent(&lane->credit) && is_spent(&lane->graph_credit)) batch_close(lane);
    os_unlock(&lane->lock);
}
