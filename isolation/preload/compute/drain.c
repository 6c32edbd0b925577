/* The helper: closes gates at their deadlines, detects when launched work is done, and reports that.
 *
 * It follows the epochs of each card's line:
 *
 *     open       checks periodically for launches; if none is made or waits for a while and all work is done: IDLE
 *     closed     an event in every stream whose work has none yet, until all are reached: DRAINED
 *     said       nothing, until the line changes
 */
#include "lanes.h"

REAL_CALL(cuEventQuery, CUevent event);

#define SELDOM_NS (100ull * OS_MS) /* notifications are lost when the socket is full */
#define SOONEST_NS (20 * 1000ull)
#define LATEST_NS (250 * 1000ull)
#define AGAIN_NS (1ull * OS_MS)

/* State of a card's epoch. */
struct watch {
    bool known;
    uint32_t epoch;
    bool drained, idle; /* already sent */
    uint64_t closed;   /* when the gate was found closed; 0: open */
    uint64_t launched; /* number of launches at */
    uint64_t quiet;    /* when they last increased, or a thread waited to launch */
    uint64_t done;     /* when all work was found done; 0: not yet */
};

static struct watch watches[MOST_CARDS];
static _Atomic bool is_old; /* the watches are stale */

/* ---- draining --------------------------------------------------------------------------------------------------- */

static bool is_done(const struct lane *lane) {
    return lane->drained == atomic_load_explicit(&lane->launched, memory_order_acquire);
}

/* If no event can be recorded yet, the lane's work may still run. */
static bool drains(struct lane *lane) {
    const enum standing standing = lane_record(lane);
    if (standing == LOST) return lane_free_lost(lane), true;
    if (standing == NOT_YET || DRIVER(REAL(cuEventQuery)(lane->drain)) == CUDA_ERROR_NOT_READY) return false;
    lane->drained = lane->recorded;
    if (!is_done(lane)) return false;
    lane_free_if_gone(lane);
    return true;
}

static void drain_lane(struct lane *lane, void *all) {
    os_lock(&lifetimes);
    const bool is_inside = atomic_load(&lane->inside);
    if (is_inside) lane_suspect(lane);
    if (is_inside || (atomic_load(&lane->used) && !is_done(lane) && (atomic_load(&lane->is_ending) || !drains(lane))))
        *(bool *)all = false;
    os_unlock(&lifetimes);
}

struct inside {
    unsigned card;
    bool is_any;
};

/* Two threads that leave at once may be counted as one: so the event for their launches is recorded after all have
 * left. */
static void find_inside(struct lane *lane, void *found) {
    struct inside *const inside = found;
    if (gate_card(lane->gate) != inside->card) return;
    inside->is_any = true;
    os_lock(&lifetimes);
    lane_suspect(lane);
    os_unlock(&lifetimes);
}

/* A launch from which the driver has not returned is running, or soon will be. */
static bool all_drained(unsigned card) {
    struct inside inside = {card, false};
    bool all = true;
    callers_each(find_inside, &inside);
    if (!inside.is_any) lanes_each(card, drain_lane, &all);
    return all && !inside.is_any;
}

static void count_launched(struct lane *lane, void *sum) {
    *(uint64_t *)sum += atomic_load_explicit(&lane->launched, memory_order_relaxed);
}

static uint64_t launched_on(unsigned card) {
    uint64_t sum = 0;
    lanes_each(card, count_launched, &sum);
    return sum;
}

/* ---- one card --------------------------------------------------------------------------------------------------- */

static uint64_t clamp(uint64_t ns) { return ns < SOONEST_NS ? SOONEST_NS : ns > LATEST_NS ? LATEST_NS : ns; }

/* Returns when to check again. */
static uint64_t closed(struct gate *gate, struct watch *watch, uint64_t word, uint64_t now) {
    gate_shut(gate, word);
    if (!watch->closed) {
        watch->closed = now;
        atomic_store(&gate->open, GATE_SHUT);
        gates_review();
        os_lock(&lifetimes);
        if (atomic_exchange(&gate->blind, false)) lanes_suspect(gate_card(gate));
        os_unlock(&lifetimes);
    }
    if (watch->drained) return now + SELDOM_NS;
    if (!all_drained(gate_card(gate))) return now + clamp((now - watch->closed) / 64);
    watch->drained = gate_say(gate, WIRE_DRAINED, watch->epoch);
    return now + (watch->drained ? SELDOM_NS : AGAIN_NS);
}

static uint64_t later(uint64_t one, uint64_t other) { return one > other ? one : other; }

/* The order matters: a launch made after `blocked` is read here sees that it must send WANT. */
static bool say_idle(struct gate *gate, struct watch *watch, uint64_t word) {
    atomic_store(&gate->wanted, 0);
    atomic_store(&gate->idle, watch->epoch + 1);
    gate_shut(gate, word);
    if (atomic_load(&gate->blocked) || launched_on(gate_card(gate)) != watch->launched) return false;
    if (!all_drained(gate_card(gate))) return false;
    return gate_say(gate, WIRE_IDLE, watch->epoch);
}

static uint64_t open(struct gate *gate, struct watch *watch, uint64_t word, uint64_t now) {
    const uint64_t idle = atomic_load(&gate->idle_ns), launched = launched_on(gate_card(gate));
    if (launched != watch->launched) {
        if (watch->idle) gate_goes_on(gate, watch->epoch);
        watch->launched = launched;
        watch->quiet = now;
        watch->done = 0;
        watch->idle = false;
        return now + idle / 2;
    }
    if (watch->idle) return now + idle / 2;
    if (atomic_load(&gate->blocked)) watch->quiet = now;
    if (!watch->done && all_drained(gate_card(gate))) watch->done = now;
    const uint64_t since = later(watch->done, watch->quiet);
    if (!watch->done || now < since + idle) return watch->done ? since + idle : now + idle / 4;
    watch->idle = say_idle(gate, watch, word);
    return now + idle / 2;
}

static uint64_t sooner(uint64_t one, uint64_t other) { return one < other ? one : other; }

static void next_epoch(struct watch *watch, unsigned card, uint32_t epoch, uint64_t now) {
    *watch = (struct watch){.known = true, .epoch = epoch, .quiet = now, .launched = launched_on(card)};
    if (atomic_load(&gate_passes)) gates_review();
}

static uint64_t look(struct gate *gate, struct watch *watch) {
    const uint64_t now = os_now();
    if (atomic_load(&gate->kind) != GATE_METERED || atomic_load(&gate->away_since)) return OS_NEVER;
    const uint64_t word = gate_word(gate);
    if (!watch->known || watch->epoch != word_epoch(word)) next_epoch(watch, gate_card(gate), word_epoch(word), now);
    if (!word_is_open(word, now)) return closed(gate, watch, word, now);
    if (word_state(word) == WIRE_FREE) return gate_look_again(gate), now + SELDOM_NS;
    return sooner(open(gate, watch, word, now), word_deadline(word));
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

void drain_forget(void) { atomic_store(&is_old, true); }

bool drain_confirm(uint64_t unused) {
    (void)unused;
    drain_forget();
    return true;
}

uint64_t drain_tick(void) {
    uint64_t due = OS_NEVER;
    if (atomic_exchange(&is_old, false)) {
        for (unsigned card = 0; card < MOST_CARDS; card++) watches[card].known = false;
        gates_review();
    }
    for (unsigned card = 0; card < session_cards(); card++) due = sooner(due, look(&gates[card], &watches[card]));
    return due;
}

/* In relaxed mode this thread's calls disturb no capture. */
void drain_listening(void) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&mode));
    os_be_prompt();
}
