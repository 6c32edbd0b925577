/* Which cards the container has: learnt at the first connection, and the same ever after. */
#include "session.h"

#include <stdatomic.h>
#include <string.h>

static unsigned char uuids[MOST_CARDS][16];
static _Atomic unsigned known; /* so many are filled in */

static bool learn_one(unsigned card, uint64_t deadline) {
    struct wire packet = {.what = WIRE_CARD, .card = (uint16_t)card};
    if (!session_ask_once(&packet, deadline) || packet.result != WIRE_OK) return false;
    memcpy(uuids[card], packet.card_is.uuid, sizeof uuids[card]);
    return true;
}

/* A number always means the same card, so only what is new is asked for. */
bool cards_learn(unsigned count, uint64_t deadline) {
    unsigned card = atomic_load(&known);
    if (count > MOST_CARDS) count = MOST_CARDS;
    for (; card < count; card++) {
        if (!learn_one(card, deadline)) return false;
        atomic_store(&known, card + 1);
    }
    return true;
}

unsigned session_cards(void) { return atomic_load(&known); }

unsigned session_card_of(const unsigned char uuid[16]) {
    for (unsigned card = 0; card < session_cards(); card++)
        if (memcmp(uuids[card], uuid, sizeof uuids[card]) == 0) return card;
    return NO_CARD;
}

void cards_forget(void) { atomic_store(&known, 0); }
