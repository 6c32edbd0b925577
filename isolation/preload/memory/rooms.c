/* Which contexts have room in the account: that was asked for before one was made, or when one is met that was made
 * without us. */
#include "memory.h"

/* By handle; also those that need no room of their own. */
static struct table known;
static _Atomic(CUcontext) last_met;

bool context_noted(unsigned card, CUcontext context) {
    const struct entry entry = {.key = (uint64_t)context, .card = (uint16_t)card, .times = 1};
    struct entry before;
    return !table_put(&known, &entry, &before) || !before.times;
}

void context_forgotten(CUcontext context) {
    struct entry entry;
    atomic_store(&last_met, NULL);
    if (context) table_take(&known, (uint64_t)context, &entry);
}

/* It is there whether or not there is room for it; what it is over the limit is refused to what comes after it. */
void context_met(unsigned card, CUcontext context) {
    if (context == atomic_load_explicit(&last_met, memory_order_relaxed)) return;
    if (context_noted(card, context)) {
        account_context(card);
        account_tell(card, WIRE_CONTEXT_MADE);
    }
    atomic_store_explicit(&last_met, context, memory_order_relaxed);
}

void contexts_forget(void) {
    atomic_store(&last_met, NULL);
    table_forget(&known);
}
