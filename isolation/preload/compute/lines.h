/* The container's page of lines, which the broker writes, and lines of our own where there is none. */
#pragma once

#include "../session/session.h"

/* The line of a card in the page; NULL: there is no page. */
HIDDEN const struct wire_line *line_in_page(unsigned card);

/* Never opens; always open; open as long as nobody else is known to want it, so that little is in flight. */
extern HIDDEN const struct wire_line line_shut, line_free, line_alone;

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
