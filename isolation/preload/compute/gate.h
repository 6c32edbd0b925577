/* The gate of a card: whether this process may launch there now.
 *
 *     open == the line's word     a launch goes through: two loads and no clock
 *     anything else               the long way (gate_enter): look at the line, say WANT, wait
 *
 * Who comes the long way and finds the line open says so in `open`; the helper takes it back at the deadline, and so
 * does a thread that looks at the clock. Nothing between a look at the gate and the launch keeps the line from
 * changing: a launch that slips through is of the epoch before, and its stream is found undrained.
 */
#pragma once

#include "../session/session.h"

#include <stdatomic.h>

/* ---- lines: of the container's page, which the broker writes, and of our own where there is none ----------------- */

/* Never opens; open as long as no other process is known to want it, so that little is in flight. */
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

/* OS_NEVER where a word has none. */
static inline uint64_t word_deadline(uint64_t word) {
    const uint64_t ticks = word >> (WIRE_STATE_BITS + WIRE_EPOCH_BITS);
    return word_state(word) == WIRE_LEASE ? ticks << WIRE_DEADLINE_SHIFT : OS_NEVER;
}

/* A state that this library does not know is closed. */
static inline bool word_is_open(uint64_t word, uint64_t now) {
    const enum wire_state state = word_state(word);
    return state == WIRE_FREE || state == WIRE_SOLE || (state == WIRE_LEASE && now < word_deadline(word));
}

/* ---- gates ------------------------------------------------------------------------------------------------------ */

#define GATE_SHUT UINT64_MAX /* no line's word */

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
    _Atomic uint32_t blocked; /* threads that wait */
    _Atomic uint32_t wanted; /* 1 + the epoch of the latest WANT; 0: to be said */
    _Atomic uint32_t idle; /* 1 + the epoch of the latest IDLE; 0: has launched since */
    _Atomic bool blind; /* launches went through that were not counted */
    _Atomic uint32_t unseen; /* how often that began */
    _Atomic bool calm; /* of late all launches were short: little is in flight, however many */
    _Atomic uint64_t watched_until; /* not before are they calm again */
    _Atomic uint64_t away_since; /* when the broker was missed; 0: it is there */
    _Atomic uint64_t idle_ns, loss_after;
    _Atomic uint32_t loss;
};

extern HIDDEN struct gate gates[MOST_CARDS];

/* Not 0 while every launch of this process may go through unseen: entries of names/entries.S read it. */
extern HIDDEN _Atomic uint32_t gate_passes;

static inline unsigned gate_card(const struct gate *gate) { return (unsigned)(gate - gates); }

static inline uint64_t gate_word(const struct gate *gate) {
    return line_word(atomic_load_explicit(&gate->line, memory_order_acquire));
}

static inline bool gate_is_open(const struct gate *gate) {
    const struct wire_line *line = atomic_load_explicit(&gate->line, memory_order_relaxed);
    return line && line_word(line) == atomic_load_explicit(&gate->open, memory_order_relaxed);
}

/* Comes back when the gate is open, with the word that it is open by. False: the launch must be refused, as the broker
 * is away and its time closed. */
HIDDEN bool gate_enter(struct gate *gate, uint64_t *word);

/* What `open` was seen to be is over. */
HIDDEN void gate_shut(struct gate *gate, uint64_t word);

/* Launches go on in an epoch in which IDLE was said: says so. */
HIDDEN void gate_goes_on(struct gate *gate, uint32_t epoch);

/* A packet about this gate, on signals. */
HIDDEN bool gate_say(const struct gate *gate, enum wire_what what, uint32_t epoch);

/* Looks again whether launches may go through unseen. */
HIDDEN void gates_review(void);

/* What launches on a card of our own were found to take: short ones may go through unseen for a while. */
HIDDEN void gate_found(struct gate *gate, bool is_short, uint64_t now);
HIDDEN void gate_look_again(struct gate *gate);

/* There is a context on the card, and launches may come. */
HIDDEN void gate_reached(unsigned card);

/* ---- as a part of the session ----------------------------------------------------------------------------------- */

HIDDEN void gates_page(int descriptor);
/* Joins again where this process had joined. */
HIDDEN bool gates_confirm(uint64_t deadline);
HIDDEN void gates_away(void);
HIDDEN void gates_back(void);
HIDDEN void gates_forget(void);
