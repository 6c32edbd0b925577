#include "growth.h"

REAL_CALL(cuDeviceGetAttribute, int *value, int attribute, CUdevice device);
REAL_CALL(cuCtxGetDevice, CUdevice *device);

/* Size of each context's local memory, entry.bytes per thread, and the functions that will increase it. */
static struct table areas, awaited;
static struct os_lock growing;
static _Atomic uint64_t unseen; /* bitmap of cards */

/* ---- local memory ----------------------------------------------------------------------------------------------- */

static uint64_t attribute(int which) {
    CUdevice device;
    int value;
    if (DRIVER(REAL(cuCtxGetDevice)(&device)) != CUDA_SUCCESS) return 0;
    if (DRIVER(REAL(cuDeviceGetAttribute)(&value, which, device)) != CUDA_SUCCESS) return 0;
    return value > 0 ? (uint64_t)value : 0;
}

/* The most threads that can be resident on the current device at once. */
static uint64_t threads(void) {
    enum { MULTIPROCESSORS = 16, THREADS_PER_MULTIPROCESSOR = 39 };
    return attribute(MULTIPROCESSORS) * attribute(THREADS_PER_MULTIPROCESSOR);
}

/* Charged until the context is gone. Keys are odd, unlike any handle. */
static CUresult charge(unsigned card, CUcontext context, uint64_t bytes) {
    static _Atomic uint64_t last;
    const struct entry what = {
        .key = 2 * atomic_fetch_add(&last, 1) + 1, .bytes = bytes, .of = (uint64_t)context, .card = (uint16_t)card};
    uint64_t charged;
    TRY(account_begin(card, bytes));
    const bool noted = held_note(HELD_GROWN, &what, &charged);
    account_end(card, noted ? 0 : bytes);
    return noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult grow(unsigned card, CUcontext context, uint64_t each) {
    struct entry area, before;
    const uint64_t is = table_get(&areas, (uint64_t)context, &area) ? area.bytes : LOCALS_AT_FIRST;
    if (each <= is) return CUDA_SUCCESS;
    TRY(charge(card, context, (each - is) * threads()));
    area = (struct entry){.key = (uint64_t)context, .bytes = each, .times = 1};
    return table_put(&areas, &area, &before) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult locals_take(uint64_t each) {
    unsigned card;
    CUcontext context;
    if (each <= LOCALS_AT_FIRST || !current_card(&card, &context) || card >= MOST_CARDS) return CUDA_SUCCESS;
    os_lock(&growing);
    const CUresult result = grow(card, context, each);
    os_unlock(&growing);
    return result;
}

void locals_forgotten(CUcontext context) {
    struct entry area;
    if (context && !table_is_empty(&areas)) table_take(&areas, (uint64_t)context, &area);
}

/* ---- awaited functions ------------------------------------------------------------------------------------------ */

bool locals_awaited(void) { return !table_is_empty(&awaited); }

void locals_await(CUfunction function, const void *owner, uint64_t each) {
    const struct entry entry = {.key = (uint64_t)function, .bytes = each, .of = (uint64_t)owner, .times = 1};
    struct entry before;
    if (each > LOCALS_AT_FIRST)
        table_put(&awaited, &entry, &before); /* without room for the entry, only NVML shows what it takes */
    else
        locals_came(function); /* a stale entry of the same address */
}

uint64_t locals_of(CUfunction function) {
    struct entry entry;
    return function && locals_awaited() && table_get(&awaited, (uint64_t)function, &entry) ? entry.bytes : 0;
}

static bool is_alike(const struct entry *entry, void *other) {
    const struct entry *const came = other;
    return entry->of == came->of && entry->bytes == came->bytes;
}

/* Removes the function, its other handle, and every function of its library that needs the same amount: that is
 * available now. */
void locals_came(CUfunction function) {
    struct entry entry;
    if (function && locals_awaited() && table_take(&awaited, (uint64_t)function, &entry))
        table_sweep(&awaited, is_alike, &entry);
}

void locals_also(CUfunction function, CUfunction kernel) {
    struct entry entry, before;
    if (!locals_awaited() || !table_get(&awaited, (uint64_t)kernel, &entry)) return;
    entry.key = (uint64_t)function;
    table_put(&awaited, &entry, &before);
}

static bool is_of(const struct entry *entry, void *owner) { return entry->of == (uint64_t)owner; }

void locals_owner_gone(const void *owner) {
    if (locals_awaited()) table_sweep(&awaited, is_of, (void *)owner);
}

/* ---- memory of unknown size ------------------------------------------------------------------------------------- */

void growth_comes(unsigned card) {
    if (card < MOST_CARDS) atomic_fetch_or(&unseen, 1ull << card);
}

bool growth_came(unsigned card) {
    const uint64_t bit = 1ull << card;
    return atomic_load(&unseen) & bit && atomic_fetch_and(&unseen, ~bit) & bit;
}

void growth_forget(void) {
    growing = (struct os_lock){0};
    table_forget(&areas);
    table_forget(&awaited);
    atomic_store(&unseen, 0);
}
