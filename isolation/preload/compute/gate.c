#include "gate.h"

#include "../memory/growth.h"
#include "lanes.h"

#define LOOK_AGAIN (100ull * OS_MS) /* a wake-up is lost when the page is replaced */

struct gate gates[MOST_CARDS];
_Atomic uint32_t gate_passes, captures;

/* ---- the page --------------------------------------------------------------------------------------------------- */

enum { PAGE_BYTES = MOST_CARDS * WIRE_LINE_BYTES };

const struct wire_line line_shut = {.word = WIRE_CLOSED}, line_alone = {.word = WIRE_SOLE};
static const struct wire_line line_free = {.word = WIRE_FREE};

static const struct wire_line *_Atomic page;

/* NULL: there is no page. */
static const struct wire_line *line_in_page(unsigned card) {
    const struct wire_line *lines = atomic_load(&page);
    return lines && card < MOST_CARDS ? lines + card : NULL;
}

/* A new page is mapped over the old one: a thread that reads a line reads either of the two. The page must be as long
 * as what is read of it, and keeps its size: the broker has sealed it. */
void gates_page(int descriptor) {
    struct os_file file;
    void *before = (void *)atomic_load(&page);
    if (!os_look_at(descriptor, &file) || file.size < PAGE_BYTES) return;
    const void *mapped = os_map_shared(descriptor, PAGE_BYTES, before);
    if (mapped) atomic_store(&page, mapped);
}

/* ---- launches that bypass the hooks ----------------------------------------------------------------------------- */

static bool is_calm(const struct gate *gate) {
    return atomic_load(&gate->kind) == GATE_METERED && atomic_load(&gate->calm) && gate_is_open(gate) &&
           word_state(atomic_load(&gate->open)) == WIRE_FREE;
}

/* Contexts can be created without our hooks, so a card without a known context may still have one: the first launch of
 * a process always takes the slow path. Beside a calm card, whose launches are rechecked periodically, such a context
 * is soon found. */
static bool passes(const struct gate *gate, bool beside_calm) {
    const uint32_t kind = atomic_load(&gate->kind);
    if (kind == GATE_UNKNOWN) return beside_calm && !atomic_load(&gate->reached);
    return kind == GATE_UNMETERED || is_calm(gate);
}

/* While a stream captures, all launches beside it are counted: the work that is unfinished when the next capture begins
 * must be known by then. A function whose local memory needs room may also be waiting for its first launch. */
static bool all_pass(void) {
    const unsigned cards = session_cards();
    bool calm = false;
    for (unsigned card = 0; card < cards; card++) calm |= is_calm(&gates[card]);
    for (unsigned card = 0; card < cards; card++)
        if (!passes(&gates[card], calm)) return false;
    return cards && session_listens() && !atomic_load(&captures) && !locals_awaited();
}

/* Only the helper sees a line change while no thread checks it, so without the helper all launches are counted. The
 * check is repeated after gate_passes is set: the helper may have cleared it in between. */
void gates_review(void) {
    if (!all_pass()) return atomic_store(&gate_passes, 0);
    if (atomic_load(&gate_passes)) return;
    for (unsigned card = 0; card < session_cards(); card++) {
        atomic_store(&gates[card].blind, true);
        atomic_fetch_add(&gates[card].unseen, 1);
    }
    atomic_store(&gate_passes, 1);
    if (!all_pass()) atomic_store(&gate_passes, 0);
}

void gate_reached(unsigned card) {
    if (card < MOST_CARDS && !atomic_exchange(&gates[card].reached, true)) gates_review();
}

#define WATCHED (20ull * OS_MS) /* kernels that start a run may be unusually short */
#define LOOKED_AT (5ull * OS_MS)

static void watch(struct gate *gate, uint64_t until) {
    atomic_store(&gate->watched_until, until);
    if (atomic_exchange(&gate->calm, false)) gates_review();
}

void gate_look_again(struct gate *gate) {
    if (atomic_load(&gate->calm)) watch(gate, os_now() + LOOKED_AT);
}

/* While the broker is unavailable no thread rechecks, and the next broker is to find little in flight. */
void gate_found(struct gate *gate, bool is_short, uint64_t now) {
    if (!is_short) {
        watch(gate, now + WATCHED);
    } else if (now >= atomic_load(&gate->watched_until) && !atomic_load(&gate->away_since) &&
               !atomic_exchange(&gate->calm, true)) {
        gates_review();
    }
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

/* Holding the turn. Without a page, or with a broker that does not know the request, time is not metered. */
static bool ask(struct gate *gate, bool (*question)(struct wire *, uint64_t), uint64_t deadline) {
    struct wire packet = {.what = WIRE_JOIN, .card = (uint16_t)gate_card(gate)};
    if (!question(&packet, deadline)) return false;
    const struct wire_line *line = packet.result == WIRE_OK ? line_in_page(gate_card(gate)) : NULL;
    atomic_store(&gate->open, GATE_SHUT);
    atomic_store(&gate->wanted, 0);
    atomic_store(&gate->idle, 0);
    atomic_store(&gate->away_since, 0);
    if (line) {
        atomic_store(&gate->idle_ns, packet.timeslice.idle_us * 1000ull);
        atomic_store(&gate->loss, packet.timeslice.loss);
        atomic_store(&gate->loss_after, packet.timeslice.loss_after);
    }
    atomic_store(&gate->line, line ? line : &line_free);
    lanes_void();
    atomic_store(&gate->kind, line ? GATE_METERED : GATE_UNMETERED);
    if (!line) gates_review();
    return true;
}

static bool join(struct gate *gate) {
    const uint64_t deadline = os_now() + SESSION_WAIT;
    if (!session_enter(deadline)) return false;
    const bool joined = atomic_load(&gate->kind) || ask(gate, session_ask, session_patience(deadline));
    session_leave();
    return joined;
}

bool gates_confirm(uint64_t deadline) {
    for (unsigned card = 0; card < MOST_CARDS; card++)
        if (atomic_load(&gates[card].kind) && !ask(&gates[card], session_ask_once, deadline)) return false;
    gates_review();
    return true;
}

static uint64_t missed; /* when the helper last reported it */

void gates_away(void) {
    missed = os_now();
    for (unsigned card = 0; card < MOST_CARDS; card++) {
        uint64_t before = 0;
        if (!atomic_load(&gates[card].kind)) continue;
        atomic_compare_exchange_strong(&gates[card].away_since, &before, missed);
        watch(&gates[card], missed);
    }
}

void gates_back(void) {
    for (unsigned card = 0; card < MOST_CARDS; card++) {
        uint64_t said = missed;
        atomic_compare_exchange_strong(&gates[card].away_since, &said, 0);
    }
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

bool gate_say(const struct gate *gate, enum wire_what what, uint32_t epoch) {
    struct wire packet = {.what = (uint16_t)what, .card = (uint16_t)gate_card(gate)};
    packet.timeslice.at = os_now();
    packet.timeslice.epoch = epoch;
    packet.timeslice.is_blocked = atomic_load(&gate->blocked) != 0;
    return session_say(&packet);
}

/* If the packet was not sent, the next check sends it again. */
static void want(struct gate *gate, uint32_t epoch) {
    uint32_t before = atomic_load(&gate->wanted);
    if (before == epoch + 1 || !atomic_compare_exchange_strong(&gate->wanted, &before, epoch + 1)) return;
    if (!gate_say(gate, WIRE_WANT, epoch)) atomic_store(&gate->wanted, 0);
}

/* ---- passing the gate ------------------------------------------------------------------------------------------- */

void gate_shut(struct gate *gate, uint64_t word) { atomic_compare_exchange_strong(&gate->open, &word, GATE_SHUT); }

/* Otherwise the broker would assume that this process does not need its time slice. A thread that finds the epoch over
 * sends it all the same: the broker ignores it, having already learned of the end. */
void gate_goes_on(struct gate *gate, uint32_t epoch) {
    if (atomic_exchange(&gate->idle, 0) == epoch + 1 && !gate_say(gate, WIRE_WANT, epoch))
        atomic_store(&gate->idle, epoch + 1);
}

static void opened(struct gate *gate, uint64_t word) {
    atomic_store(&gate->open, word);
    if (word_state(word) == WIRE_FREE) watch(gate, os_now() + WATCHED);
    gate_goes_on(gate, word_epoch(word));
}

/* What a launch does when it finds the gate closed. */
enum loss { STAYS, MISSED, REFUSED };

static enum loss loss_of(const struct gate *gate, uint64_t since, uint64_t now) {
    const uint64_t away = atomic_load(&gate->away_since);
    if (!away || now < away + atomic_load(&gate->loss_after)) return STAYS;
    if (atomic_load(&gate->loss) == WIRE_LOSS_FREE) return MISSED;
    return now >= since + SESSION_WAIT && now >= away + SESSION_WAIT ? REFUSED : STAYS;
}

/* If the broker has returned in between, its line is at the same address, so that one is restored. Windows still apply:
 * the next broker finds little to drain. */
static void go_free(struct gate *gate, const struct wire_line *line) {
    const struct wire_line *before = line, *alone = &line_alone;
    atomic_compare_exchange_strong(&gate->line, &before, alone);
    if (!atomic_load(&gate->away_since)) atomic_compare_exchange_strong(&gate->line, &alone, line);
    lanes_void();
}

/* Whether the gate opens, for a thread that has waited since `since`. */
static bool wait_for(struct gate *gate, uint64_t since, uint64_t *word) {
    for (;;) {
        const struct wire_line *line = atomic_load(&gate->line);
        const uint32_t wake = line_wake(line);
        const uint64_t now = os_now();
        *word = line_word(line);
        if (word_is_open(*word, now)) return true;
        want(gate, word_epoch(*word));
        const enum loss loss = loss_of(gate, since, now);
        if (loss == REFUSED) return false;
        if (loss == MISSED)
            go_free(gate, line);
        else
            os_wait_shared(&line->wake, wake, now + LOOK_AGAIN);
    }
}

bool gate_enter(struct gate *gate, uint64_t *word) {
    if (!atomic_load(&gate->kind) && !join(gate)) return false;
    *word = gate_word(gate);
    if (atomic_load(&gate->open) == *word) return true; /* a thread that reads the clock closes it in time */
    const uint64_t now = os_now();
    if (!word_is_open(*word, now)) {
        atomic_fetch_add(&gate->blocked, 1);
        const bool open = wait_for(gate, now, word);
        atomic_fetch_sub(&gate->blocked, 1);
        if (!open) return false;
    }
    if (atomic_load(&gate->open) != *word) opened(gate, *word);
    return true;
}

void gates_forget(void) {
    for (unsigned card = 0; card < MOST_CARDS; card++) gates[card] = (struct gate){.open = GATE_SHUT};
    atomic_store(&gate_passes, 0);
}
