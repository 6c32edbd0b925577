#include "reserves.h"
#include "shared.h"

REAL_CALL(cuMemPoolGetAttribute, CUmemoryPool pool, unsigned attribute, void *value);
REAL_CALL(cuMemPoolSetAttribute, CUmemoryPool pool, unsigned attribute, void *value);
REAL_CALL(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep);
REAL_CALL(cuMemPoolDestroy, CUmemoryPool pool);
REAL_CALL(cuDeviceGetMemPool, CUmemoryPool *pool, CUdevice device);
REAL_CALL(cuDeviceSetMemPool, CUdevice device, CUmemoryPool pool);
REAL_CALL(cuDeviceGetDefaultMemPool, CUmemoryPool *pool, CUdevice device);
REAL_CALL(cuMemGetMemPool, CUmemoryPool *pool, CUmemLocation *location, unsigned type);
REAL_CALL(cuMemSetMemPool, CUmemLocation *location, unsigned type, CUmemoryPool pool);
REAL_CALL(cuMemGetDefaultMemPool, CUmemoryPool *pool, CUmemLocation *location, unsigned type);
REAL_CALL(cuDeviceGetGraphMemAttribute, CUdevice device, unsigned attribute, void *value);
REAL_CALL(cuDeviceGraphMemTrim, CUdevice device);

enum { MOST_POOLS = 4096 };

/* Intervals for rereading reserves: those used recently, and the others. */
#define SOON (100ull * OS_MS)
#define LATER (1000ull * OS_MS)

/* One lock for each, held while the driver is asked for the size: two threads must not record sizes in another order
 * than the driver reported them. */
struct reserve {
    struct os_lock lock;
    _Atomic(CUmemoryPool) pool; /* NULL: the reserve of graphs */
    _Atomic CUdevice device;
    CUmemLocation place; /* of a pool: the location it was created for */
    unsigned type;
    _Atomic unsigned card;
    unsigned calls; /* calls in progress that may make it grow */
    _Atomic uint64_t bytes; /* charged */
    _Atomic bool there, left;
    uint64_t number, given; /* number: of the piece that others can hold, 0 if they can't; given: bytes returned of it
                             * in total */
};

static struct reserve pools[MOST_POOLS], graphs[MOST_CARDS];
static struct os_lock making;
static _Atomic uint64_t last_number;
static _Atomic unsigned made; /* entries of `pools` in use or used before */
static struct table by_handle; /* entry.of: index into `pools` */
static struct table on_host; /* pools that belong to no card */
static _Atomic bool active;

unsigned reserve_card(const struct reserve *reserve) { return reserve->card; }

bool reserve_is_left(const struct reserve *reserve) { return atomic_load(&reserve->left); }

/* ---- the driver's number; all locked ---------------------------------------------------------------------------- */

static bool ask_pool(const struct reserve *reserve, unsigned attribute, uint64_t *bytes) {
    *bytes = 0;
    return DRIVER(REAL(cuMemPoolGetAttribute)(reserve->pool, attribute, bytes)) == CUDA_SUCCESS;
}

/* Of managed memory, which may get physical memory only when touched, everything allocated counts. */
static bool tells(const struct reserve *reserve, uint64_t *bytes) {
    uint64_t used;
    if (!ask_pool(reserve, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, bytes)) return false;
    if (reserve->type == CU_MEM_ALLOCATION_TYPE_PINNED) return true;
    if (!ask_pool(reserve, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used)) return false;
    if (used > *bytes) *bytes = used;
    return true;
}

static bool tells_of_graphs(const struct reserve *reserve, uint64_t *bytes) {
    return DRIVER(REAL(cuDeviceGetGraphMemAttribute)(reserve->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, bytes)) ==
           CUDA_SUCCESS;
}

/* A reserve that the driver no longer knows is empty. */
static uint64_t ask(const struct reserve *reserve) {
    uint64_t bytes = 0;
    return (reserve->pool ? tells(reserve, &bytes) : tells_of_graphs(reserve, &bytes)) ? bytes : 0;
}

struct change {
    uint64_t more, less;
    uint64_t let_go; /* freed, and no longer ours to account for */
};

/* A shared piece ends when all of it was returned; what is allocated later is another piece. */
static void let_go(struct reserve *reserve, struct change *change) {
    reserve->given += change->less;
    account_let_go(reserve->card, shared_number(SHARED_POOL, reserve->number), reserve->given, change->less);
    change->let_go = change->less;
    change->less = 0;
}

static void tell_others(struct reserve *reserve, uint64_t now, struct change *change) {
    if (change->more)
        shared_export(reserve->card, shared_number(SHARED_POOL, reserve->number), 0, reserve->given + now);
    if (change->less) let_go(reserve, change);
    if (now) return;
    reserve->number = reserve->given = 0;
}

static struct change change_to(struct reserve *reserve, uint64_t now) {
    const uint64_t before = atomic_exchange(&reserve->bytes, now);
    struct change change = {now > before ? now - before : 0, before > now ? before - now : 0, 0};
    if (reserve->number) tell_others(reserve, now, &change);
    return change;
}

/* `most`: growth that the caller has reserved. While other calls are in progress, growth beyond it is attributed to
 * them. */
static struct change read_anew(struct reserve *reserve, uint64_t most) {
    const uint64_t before = atomic_load(&reserve->bytes);
    uint64_t now = ask(reserve);
    if (reserve->calls && now > before && now - before > most) now = before + most;
    return change_to(reserve, now);
}

/* Whether it is managed memory. */
static bool is_hidden(const struct reserve *reserve) {
    return reserve->pool && reserve->type != CU_MEM_ALLOCATION_TYPE_PINNED;
}

static void hide(const struct reserve *reserve, uint64_t more, uint64_t less) {
    if (is_hidden(reserve)) account_hide(reserve->card, more, less);
}

/* ---- calls that make it grow ------------------------------------------------------------------------------------ */

void reserve_begin(struct reserve *reserve, uint64_t most) {
    hide(reserve, most, 0);
    os_lock(&reserve->lock);
    reserve->calls++;
    os_unlock(&reserve->lock);
}

/* Growth beyond the reservation is charged at once, which can make the credit negative. */
bool reserve_end(struct reserve *reserve, uint64_t most) {
    os_lock(&reserve->lock);
    reserve->calls--;
    const struct change change = read_anew(reserve, most);
    os_unlock(&reserve->lock);
    atomic_store(&active, true);
    hide(reserve, change.more, most + change.less + change.let_go);
    const bool is_within = change.more <= most;
    if (!is_within) account_correct(reserve->card, change.more - most, 0);
    account_end(reserve->card, is_within ? most - change.more + change.less : 0);
    return is_within;
}

/* ---- calls that make it smaller --------------------------------------------------------------------------------- */

void reserve_begin_shrink(struct reserve *reserve) { account_begin_free(reserve->card); }

/* In flight if it takes two steps. */
static void correct(const struct reserve *reserve, const struct change *change) {
    const bool in_steps = is_hidden(reserve) && (change->more || change->less);
    if (in_steps) account_begin_free(reserve->card);
    hide(reserve, change->more, change->less + change->let_go);
    account_correct(reserve->card, change->more, change->less);
    if (in_steps) account_end_free(reserve->card, 0);
}

/* Locked: the driver must not be asked about a pool that is being destroyed. */
static uint64_t reread_locked(struct reserve *reserve) {
    if (!atomic_load(&reserve->there)) return 0;
    const struct change change = read_anew(reserve, 0);
    correct(reserve, &change);
    return change.less + change.let_go;
}

static uint64_t reread(struct reserve *reserve) {
    os_lock(&reserve->lock);
    const uint64_t less = reread_locked(reserve);
    os_unlock(&reserve->lock);
    return less;
}

void reserve_end_shrink(struct reserve *reserve) {
    reread(reserve);
    account_end_free(reserve->card, 0);
}

/* Runs on a thread that requests other memory, and whose capture may forbid such calls. */
static void trim(struct reserve *reserve) {
    const int mode = unnoticed_begin();
    if (reserve->pool)
        DRIVER(REAL(cuMemPoolTrimTo)(reserve->pool, 0));
    else
        DRIVER(REAL(cuDeviceGraphMemTrim)(reserve->device));
    unnoticed_end(mode);
}

/* ---- destruction of a pool -------------------------------------------------------------------------------------- */

static void forget_pool(struct reserve *reserve) {
    atomic_store(&reserve->left, false);
    reserve->number = reserve->given = 0;
    atomic_store(&reserve->there, false);
}

/* Locked. Destroys the pool in the driver if it is empty. Only afterwards can another pool get its handle. */
static bool end_pool(struct reserve *reserve, CUresult *result) {
    trim(reserve);
    reread_locked(reserve);
    if (atomic_load(&reserve->bytes) || reserve->calls) return false;
    struct entry entry;
    table_take(&by_handle, (uint64_t)reserve->pool, &entry);
    *result = DRIVER(REAL(cuMemPoolDestroy)(reserve->pool));
    if (*result != CUDA_SUCCESS && !atomic_load(&reserve->left)) {
        struct entry before;
        table_put(&by_handle, &entry, &before);
    } else {
        forget_pool(reserve);
    }
    return true;
}

/* Drivers before 13.0 have pinned memory of whole devices only, and only these calls for it. */
static bool is_plain(const struct reserve *reserve) {
    return reserve->type == CU_MEM_ALLOCATION_TYPE_PINNED && reserve->place.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static CUmemoryPool current_of(const struct reserve *reserve) {
    CUmemoryPool pool;
    CUmemLocation place = reserve->place;
    const CUresult result = is_plain(reserve) ? DRIVER(REAL(cuDeviceGetMemPool)(&pool, place.id))
                                              : DRIVER(REAL(cuMemGetMemPool)(&pool, &place, reserve->type));
    return result == CUDA_SUCCESS ? pool : NULL;
}

static CUmemoryPool standard_of(const struct reserve *reserve) {
    CUmemoryPool pool;
    CUmemLocation place = reserve->place;
    const CUresult result = is_plain(reserve) ? DRIVER(REAL(cuDeviceGetDefaultMemPool)(&pool, place.id))
                                              : DRIVER(REAL(cuMemGetDefaultMemPool)(&pool, &place, reserve->type));
    return result == CUDA_SUCCESS ? pool : NULL;
}

static void no_longer_current(const struct reserve *reserve) {
    CUmemLocation place = reserve->place;
    const CUmemoryPool standard = current_of(reserve) == reserve->pool ? standard_of(reserve) : NULL;
    if (!standard) return;
    if (is_plain(reserve))
        DRIVER(REAL(cuDeviceSetMemPool)(place.id, standard));
    else
        DRIVER(REAL(cuMemSetMemPool)(&place, reserve->type, standard));
}

/* A driver stops reporting the size of a destroyed pool of which something is still in use. So the pool is kept until
 * it is empty; to the program it is gone. */
static CUresult leave_pool(struct reserve *reserve) {
    uint64_t nothing = 0;
    no_longer_current(reserve);
    DRIVER(REAL(cuMemPoolSetAttribute)(reserve->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing));
    atomic_store(&reserve->left, true);
    atomic_store(&active, true);
    return CUDA_SUCCESS;
}

CUresult reserve_destroy(struct reserve *reserve) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (reserve_is_left(reserve)) return result;
    if (standard_of(reserve) == reserve->pool) return DRIVER(REAL(cuMemPoolDestroy)(reserve->pool));
    const unsigned card = reserve->card;
    account_begin_free(card);
    os_lock(&reserve->lock);
    if (!end_pool(reserve, &result)) result = leave_pool(reserve);
    os_unlock(&reserve->lock);
    account_end_free(card, 0);
    return result;
}

static void end_left(struct reserve *reserve) {
    CUresult ignored;
    os_lock(&reserve->lock);
    if (atomic_load(&reserve->there) && atomic_load(&reserve->left)) end_pool(reserve, &ignored);
    os_unlock(&reserve->lock);
}

/* ---- finding reserves ------------------------------------------------------------------------------------------- */

static struct reserve *pool_known(CUmemoryPool pool) {
    struct entry entry;
    return table_get(&by_handle, (uint64_t)pool, &entry) ? &pools[entry.of] : NULL;
}

static unsigned free_entry(void) {
    unsigned index = 0;
    while (index < atomic_load(&made) && atomic_load(&pools[index].there)) index++;
    return index;
}

/* Locked by `making`. Others find it by its handle, so that is recorded last. */
static struct reserve *pool_make(CUmemoryPool pool, unsigned card, const CUmemLocation *place, unsigned type) {
    const struct reserve asked = {.pool = pool, .type = type};
    uint64_t ignored;
    const unsigned index = free_entry();
    const struct entry entry = {.key = (uint64_t)pool, .of = index, .card = (uint16_t)card, .times = 1};
    struct entry before;
    if (index == MOST_POOLS || !tells(&asked, &ignored)) return NULL;
    struct reserve *reserve = &pools[index];
    reserve->pool = pool;
    reserve->card = card;
    reserve->place = *place;
    reserve->type = type;
    atomic_store(&reserve->bytes, 0);
    if (!table_put(&by_handle, &entry, &before)) return NULL;
    atomic_store(&reserve->there, true);
    if (index == atomic_load(&made)) atomic_store(&made, index + 1);
    return reserve;
}

struct reserve *reserve_of_pool(CUmemoryPool pool) { return pool_known(pool); }

static void note_on_host(CUmemoryPool pool) {
    const struct entry entry = {.key = (uint64_t)pool, .times = 1};
    struct entry before;
    table_put(&on_host, &entry, &before);
}

bool reserve_pool_on_host(CUmemoryPool pool) {
    struct entry entry;
    return !table_is_empty(&on_host) && table_get(&on_host, (uint64_t)pool, &entry);
}

void reserve_pool_gone(CUmemoryPool pool) {
    struct entry entry;
    table_take(&on_host, (uint64_t)pool, &entry);
}

struct reserve *reserve_met_pool(CUmemoryPool pool, const CUmemLocation *place, unsigned type) {
    struct reserve *reserve = pool_known(pool);
    if (reserve || !pool) return reserve;
    const unsigned card = card_at(place, type);
    if (card == HOST_MEMORY) return note_on_host(pool), NULL;
    if (card >= MOST_CARDS) return NULL;
    os_lock(&making);
    reserve = pool_known(pool);
    if (!reserve) reserve = pool_make(pool, card, place, type);
    os_unlock(&making);
    reserve_pool_gone(pool); /* a pool on the host had this handle before */
    return reserve;
}

struct reserve *reserve_of_graphs(unsigned card) {
    if (card >= MOST_CARDS) return NULL;
    struct reserve *reserve = &graphs[card];
    if (atomic_load(&reserve->there)) return reserve;
    os_lock(&making);
    reserve->card = card;
    reserve->device = device_of(card);
    atomic_store(&reserve->there, true);
    os_unlock(&making);
    return reserve;
}

CUresult reserve_export(struct reserve *reserve, uint64_t name) {
    os_lock(&reserve->lock);
    if (!reserve->number) reserve->number = atomic_fetch_add(&last_number, 1) + 1;
    const uint64_t size = reserve->given + atomic_load(&reserve->bytes);
    const CUresult result = shared_export(reserve->card, shared_number(SHARED_POOL, reserve->number), name, size);
    os_unlock(&reserve->lock);
    return result;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static bool has_any(struct reserve *reserve, unsigned card) {
    return atomic_load(&reserve->there) && reserve->card == card && atomic_load(&reserve->bytes);
}

/* In flight, so that no sample taken meanwhile is used. */
static uint64_t shrink_one(struct reserve *reserve, unsigned card) {
    if (!has_any(reserve, card)) return 0;
    account_begin_free(card);
    os_lock(&reserve->lock);
    if (atomic_load(&reserve->there)) trim(reserve);
    const uint64_t less = reread_locked(reserve);
    os_unlock(&reserve->lock);
    account_end_free(card, 0);
    return less;
}

bool reserves_shrink(unsigned card) {
    uint64_t less = shrink_one(&graphs[card], card);
    for (unsigned index = 0; index < atomic_load(&made); index++) less += shrink_one(&pools[index], card);
    return less;
}

void reserves_reread(unsigned card) {
    if (has_any(&graphs[card], card)) reread(&graphs[card]);
    for (unsigned index = 0; index < atomic_load(&made); index++) {
        if (has_any(&pools[index], card)) reread(&pools[index]);
        if (atomic_load(&pools[index].left)) end_left(&pools[index]);
    }
}

static uint64_t next_tick; /* of the listener */

/* Reserves shrink when a program synchronizes, which no hook sees. */
uint64_t reserves_tick(void) {
    const uint64_t now = os_now();
    if (now < next_tick) return next_tick;
    const bool was_active = atomic_exchange(&active, false);
    for (unsigned card = 0; card < session_cards(); card++) {
        reserves_reread(card);
        if (!was_active) account_keep(card, 0);
    }
    return next_tick = now + (was_active ? SOON : LATER);
}

void reserves_forget(void) {
    making = (struct os_lock){0};
    for (unsigned index = 0; index < atomic_load(&made); index++) pools[index] = (struct reserve){0};
    for (unsigned card = 0; card < MOST_CARDS; card++) graphs[card] = (struct reserve){0};
    atomic_store(&made, 0);
    table_forget(&by_handle);
    table_forget(&on_host);
    atomic_store(&active, false);
    next_tick = 0;
}
