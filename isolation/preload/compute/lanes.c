#include "lanes.h"

#include "../memory/growth.h"

#include <string.h>

REAL_CALL(cuCtxGetCurrent, CUcontext *context);
REAL_CALL(cuCtxPushCurrent_v2, CUcontext context);
REAL_CALL(cuCtxPopCurrent_v2, CUcontext *context);
REAL_CALL(cuStreamGetCtx, CUstream stream, CUcontext *context);
REAL_CALL(cuCtxGetDevice, CUdevice *device);

struct os_lock lifetimes;

static struct lane lanes[MOST_LANES];
static _Atomic unsigned reached; /* index beyond the last lane ever used */
static struct os_lock table;     /* protects the assignment of lanes to streams */

/* ---- finding ---------------------------------------------------------------------------------------------------- */

struct owner {
    CUstream stream;
    CUcontext context;
    const void *thread;
};

/* Default streams have the same handles in all contexts, and the per-thread one in all threads. Other handles are
 * unique, but the driver may give one of a destroyed stream or context away before its lane is free. */
static bool is_of(const struct lane *lane, const struct owner *owner) {
    if (lane->stream != owner->stream || lane->thread != owner->thread) return false;
    if (atomic_load(&lane->gone) || atomic_load(&lane->is_ending)) return false;
    return !is_default(owner->stream) || lane->context == owner->context;
}

static struct lane *find(const struct owner *owner) {
    const unsigned end = atomic_load(&reached);
    for (struct lane *lane = lanes; lane < lanes + end; lane++)
        if (atomic_load(&lane->used) && is_of(lane, owner)) return lane;
    return NULL;
}

static struct lane *unused(void) {
    const unsigned end = atomic_load(&reached);
    for (struct lane *lane = lanes; lane < lanes + end; lane++)
        if (!atomic_load(&lane->used)) return lane;
    if (end == MOST_LANES) return NULL;
    atomic_store(&reached, end + 1);
    return &lanes[end];
}

static void begin(struct lane *lane, const struct owner *owner, unsigned card) {
    os_lock(&lane->lock); /* a launch of the previous owner may just be closing its batch */
    memset(&lane->batches, 0, sizeof lane->batches);
    atomic_store(&lane->word, &line_shut.word);
    lane->gate = &gates[card];
    lane->stream = owner->stream;
    lane->context = owner->context;
    lane->thread = owner->thread;
    lane->first = lane->count = 0;
    lane->is_open = lane->has_no_events = false;
    atomic_store(&lane->gone, false);
    atomic_store(&lane->is_ending, false);
    lane->last_end = lane->drain = NULL;
    lane->cost = lane->last_done = lane->budget = 0;
    lane->proved = 0;
    lane->closed = lane->recorded = lane->drained = atomic_load(&lane->launched);
    lane->granted = 0;
    atomic_store(&lane->credit, 0);
    atomic_store(&lane->graph, NULL);
    atomic_store(&lane->graph_credit, 0);
    os_unlock(&lane->lock);
    atomic_store(&lane->used, true);
}

static struct lane *find_or_make(const struct owner *owner, unsigned card) {
    os_lock(&table);
    struct lane *lane = find(owner);
    if (!lane && (lane = unused())) begin(lane, owner, card);
    os_unlock(&table);
    return lane;
}

struct lane *lane_known(CUstream stream) {
    const struct owner owner = {stream, NULL, NULL};
    os_lock(&table);
    struct lane *lane = find(&owner);
    os_unlock(&table);
    return lane;
}

/* A stream belongs to its own context, regardless of the current one; there may be none. */
static bool owner_of(CUstream stream, struct owner *owner, unsigned *card) {
    *owner = (struct owner){stream, NULL, stream == CU_STREAM_PER_THREAD ? &lane_cache : NULL};
    const bool known = current_card(card, &owner->context);
    CUcontext other;
    CUdevice device;
    if (is_default(stream) || DRIVER(REAL(cuStreamGetCtx)(stream, &other)) != CUDA_SUCCESS) return known;
    if (known && other == owner->context) return true;
    if (DRIVER(REAL(cuCtxPushCurrent_v2)(other)) != CUDA_SUCCESS) return known;
    const bool found = DRIVER(REAL(cuCtxGetDevice)(&device)) == CUDA_SUCCESS;
    if (found) *card = card_of(device);
    if (found) owner->context = other;
    lane_context_pop();
    return known || found;
}

static void remember(CUstream stream, struct lane *lane, uint32_t serial) {
    const struct wire_line *line = atomic_load(&lane->gate->line);
    struct caller *const caller = caller_here();
    if (!caller || locals_awaited()) return;
    atomic_store(&lane->word, line ? &line->word : &line_shut.word);
    if (lane_cache.serial != serial) lane_cache = (struct lane_cache){.serial = serial, .caller = caller};
    if (lane_cached(stream) == lane) return;
    lane_cache.places[1] = lane_cache.places[0];
    lane_cache.places[0] = (struct lane_place){stream, lane};
}

/* A context can become current without our hooks. */
static bool is_here(const struct lane *lane) {
    CUcontext now;
    return !is_default(lane->stream) || (DRIVER(REAL(cuCtxGetCurrent)(&now)) == CUDA_SUCCESS && now == lane->context);
}

struct lane *lane_of(CUstream stream, unsigned *card) {
    struct owner owner;
    const uint32_t serial = atomic_load(&lanes_serial);
    struct lane *lane = lane_cached(stream);
    if (lane && !is_here(lane)) lanes_switch(), lane = NULL;
    if (lane && atomic_load(&lane->word) != &line_shut.word) return *card = gate_card(lane->gate), lane;
    lane = is_default(stream) ? NULL : lane_known(stream);
    if (lane)
        *card = gate_card(lane->gate);
    else if (!owner_of(stream, &owner, card) || *card >= MOST_CARDS)
        return *card = NO_CARD, NULL;
    else
        lane = find_or_make(&owner, *card);
    if (lane) remember(stream, lane, serial);
    return lane;
}

void lane_release(struct lane *lane) {
    os_lock(&table);
    atomic_store(&lane->used, false);
    os_unlock(&table);
}

void lanes_each(unsigned card, void (*each)(struct lane *lane, void *argument), void *argument) {
    const unsigned end = atomic_load(&reached);
    for (struct lane *lane = lanes; lane < lanes + end; lane++)
        if (atomic_load(&lane->used) && gate_card(lane->gate) == card) each(lane, argument);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

bool lane_context_push(const struct lane *lane) {
    return DRIVER(REAL(cuCtxPushCurrent_v2)(lane->context)) == CUDA_SUCCESS;
}

void lane_context_pop(void) {
    CUcontext popped;
    DRIVER(REAL(cuCtxPopCurrent_v2)(&popped));
}

void lanes_context_made(unsigned card, CUcontext context) {
    const struct owner owner = {CU_STREAM_LEGACY, context, NULL};
    lanes_switch();
    if (card < MOST_CARDS && context) find_or_make(&owner, card);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

void lane_made(CUstream stream) {
    KEEP_ERRNO;
    unsigned card;
    lane_of(stream, &card);
}

/* ---- a forked child --------------------------------------------------------------------------------------------- */

void lanes_forget(void) {
    const unsigned end = atomic_load(&reached);
    for (unsigned n = 0; n < end; n++) lanes[n] = (struct lane){0};
    atomic_store(&reached, 0);
    memset(&table, 0, sizeof table);
    memset(&lifetimes, 0, sizeof lifetimes);
    lanes_void();
}
