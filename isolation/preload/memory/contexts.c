/* Which contexts are accounted: room was requested before they were created, or when one created without our hooks was
 * first seen. */
#include "memory.h"

REAL_CALL(cuCtxGetCurrent, CUcontext *context);
REAL_CALL(cuCtxGetDevice, CUdevice *device);

/* By handle; includes those that need no room of their own. */
static struct table contexts;
static _Atomic(CUcontext) last_met;

bool context_noted(unsigned card, CUcontext context) {
    const struct entry entry = {.key = (uint64_t)context, .card = (uint16_t)card, .times = 1};
    struct entry before;
    return !table_put(&contexts, &entry, &before) || !before.times;
}

void context_forgotten(CUcontext context) {
    struct entry entry;
    atomic_store(&last_met, NULL);
    if (context) table_take(&contexts, (uint64_t)context, &entry);
}

/* The context exists whether or not there is room for it; memory over the limit is refused to later allocations. */
void context_met(unsigned card, CUcontext context) {
    if (context == atomic_load_explicit(&last_met, memory_order_relaxed)) return;
    if (context_noted(card, context)) {
        account_context(card);
        account_tell(card, WIRE_CONTEXT_MADE);
    }
    atomic_store_explicit(&last_met, context, memory_order_relaxed);
}

bool current_card(unsigned *card, CUcontext *context) {
    CUdevice device;
    if (DRIVER(REAL(cuCtxGetDevice)(&device)) != CUDA_SUCCESS) return false;
    if (DRIVER(REAL(cuCtxGetCurrent)(context)) != CUDA_SUCCESS || !*context) return false;
    *card = card_of(device);
    context_met(*card, *context);
    return true;
}

void contexts_forget(void) {
    atomic_store(&last_met, NULL);
    table_forget(&contexts);
}
