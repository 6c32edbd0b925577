/* The gate of a card: whether this process may launch there now.
 *
 *     open == the line's word     a launch goes through: two loads, no clock
 *     otherwise                   the slow path (gate_enter): read the line, send WANT, wait
 *
 * A thread on the slow path that finds the line open sets `open`; it is cleared at the deadline by the helper, or by a
 * thread that reads the clock. The line may change between the check and the launch: such a launch belongs to the
 * previous epoch, and its stream is found undrained.
 */
#pragma once

#include "../session/session.h"

#include <stdatomic.h>

/* ---- lines: of the shared page, which the broker writes, and our own if there is none ---------------------------- */

/* line_shut never opens; line_alone is open as long as no other process is known to need the card, but limits what is
 * in flight. */
extern HIDDEN const struct wire_line line_shut, line_alone;

static inline uint64_t line_word(const struct wire_line *line) {
    return __atomic_load_n(&line->word, __ATOMIC_ACQUIRE);
}

static inline uint32_t line_wake(const struct wire_line *line) {
    return __atomic_load_n(&line->wake, __ATOMIC_ACQUIRE);
}

static inline enum wire_state word_state(uint64_t word) {
    return (enum wire_state)(word & ((1u << WIRE_STATE_BITS) - 1));
}

static inline uint32_t word_epoch(uint64_t word) {
    return (uint32_t)(word >> WIRE_STATE_BITS) & ((1u << WIRE_EPOCH_BITS) - 1);
}

/* OS_NEVER if the word has no deadline. */
static inline uint64_t word_deadline(uint64_t word) {
    const uint64_t ticks = word >> (WIRE_STATE_BITS + WIRE_EPOCH_BITS);
    return word_state(word) == WIRE_TIMESLICE ? ticks << WIRE_DEADLINE_SHIFT : OS_NEVER;
}

/* A state unknown to this library counts as closed. */
static inline bool word_is_open(uint64_t word, uint64_t now) {
    const enum wire_state state = word_state(word);
    return state == WIRE_FREE || state == WIRE_SOLE || (state == WIRE_TIMESLICE && now < word_deadline(word));
}

/* ---- gates ------------------------------------------------------------------------------------------------------ */

#define GATE_SHUT UINT64_MAX /* equal to no line's word */

enum gate_kind {
    GATE_UNKNOWN, /* nothing was launched yet */
    GATE_METERED,
    GATE_UNMETERED, /* the broker does not meter this card's time */
};

struct gate {
    const struct wire_line *_Atomic line;
    _Atomic uint64_t open;
    _Atomic uint32_t kind;
    _Atomic bool reached; /* the process has or had a context there */
    _Atomic uint32_t blocked; /* number of threads that wait, here or for the window */
    _Atomic uint32_t wanted; /* 1 + the epoch of the latest WANT; 0: not sent */
    _Atomic uint32_t idle; /* 1 + the epoch of the latest IDLE; 0: launched since */
    _Atomic bool blind; /* uncounted launches went through */
    _Atomic uint32_t unseen; /* how many times gate_passes was set */
    _Atomic bool calm; /* all recent launches were short: little is in flight, however many they are */
    _Atomic uint64_t watched_until; /* the earliest time at which it can become calm again */
    _Atomic uint64_t away_since; /* when the broker became unavailable; 0: it is available */
    _Atomic uint64_t idle_ns, loss_after;
    _Atomic uint32_t loss;
};

extern HIDDEN struct gate gates[MOST_CARDS];

/* Nonzero while every launch of this process may bypass the hooks: the entries of names/entries.S read it. */
extern HIDDEN _Atomic uint32_t gate_passes;

/* Captures possibly under way; while 0 the driver is not asked. */
extern HIDDEN _Atomic uint32_t captures;

static inline unsigned gate_card(const struct gate *gate) { return (unsigned)(gate - gates); }

static inline uint64_t gate_word(const struct gate *gate) {
    return line_word(atomic_load_explicit(&gate->line, memory_order_acquire));
}

static inline bool gate_is_open(const struct gate *gate) {
    const struct wire_line *line = atomic_load_explicit(&gate->line, memory_order_relaxed);
    return line && line_word(line) == atomic_load_explicit(&gate->open, memory_order_relaxed);
}

/* Waits until the gate is open, and returns the word for which it is. False: the launch must be refused, since the
 * broker is unavailable and the card's time closed. */
HIDDEN bool gate_enter(struct gate *gate, uint64_t *word);

/* Closes the gate if `open` still equals `word`. */
HIDDEN void gate_shut(struct gate *gate, uint64_t word);

/* Sends WANT if IDLE was sent in this epoch: launches continue. */
HIDDEN void gate_goes_on(struct gate *gate, uint32_t epoch);

/* Sends a packet about this gate on `signals`. */
HIDDEN bool gate_say(const struct gate *gate, enum wire_what what, uint32_t epoch);

/* Rechecks whether launches may bypass the hooks. */
HIDDEN void gates_review(void);

/* Reports how long launches on an unshared card take: short ones may bypass the hooks for a while. */
HIDDEN void gate_found(struct gate *gate, bool is_short, uint64_t now);
HIDDEN void gate_look_again(struct gate *gate);

/* There is a context on the card, so launches may follow. */
HIDDEN void gate_reached(unsigned card);

/* ---- as a part of the session ----------------------------------------------------------------------------------- */

HIDDEN void gates_page(int descriptor);
/* Joins again if this process had joined. */
HIDDEN bool gates_confirm(uint64_t deadline);
HIDDEN void gates_away(void);
HIDDEN void gates_back(void);
HIDDEN void gates_forget(void);
