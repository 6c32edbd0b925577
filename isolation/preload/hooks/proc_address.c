/* cuGetProcAddress: the driver answers, with the caller's own version and flags; the address of a hooked function is
 * replaced by our entry for it. Names are not checked: an empty name passes, and so does every unknown one.
 *
 * The driver's addresses are learned from its exported symbols, and from its own answers for each version and default
 * stream (driver/cuda.def), which may differ.
 */
#include "../frame/entries.h"
#include "../migration/migration.h"
#include "hooks.h"

#include <string.h>

/* ---- mapping from driver addresses to hooked functions ----------------------------------------------------------- */

/* Open addressing, never full; an address stays for the life of the process. Lock-free: the table is filled once,
 * possibly by several threads that write the same in the same order; then it is only read. */
enum { PLACES = 4096 };

struct known {
    void *_Atomic theirs;
    void *_Atomic ours; /* `theirs` itself, if it is not one hook's */
    const char *_Atomic name;
};

static struct known table[PLACES];

_Static_assert(HOOKS * 12 < PLACES, "six forms of a name at most, each at two addresses");

static struct known *first_place(const void *theirs) { return &table[(uintptr_t)theirs * 0x9e3779b97f4a7c15u >> 52]; }

static struct known *next_place(struct known *place) { return place + 1 < table + PLACES ? place + 1 : table; }

static struct known *find(void *theirs, bool add) {
    for (struct known *place = first_place(theirs);; place = next_place(place)) {
        void *there = atomic_load_explicit(&place->theirs, memory_order_acquire);
        if (!there && !add) return NULL;
        if (there == theirs || (!there && atomic_compare_exchange_strong(&place->theirs, &there, theirs)) ||
            there == theirs)
            return place;
    }
}

/* Forms of one function, such as cuMemFree and cuMemFree_v2: if they share an address, either hook works. */
static bool of_one_function(const char *one, const char *other) {
    size_t length = strcspn(one, "_");
    return length == strcspn(other, "_") && !memcmp(one, other, length);
}

static void dispute(struct known *place, const char *name, void *theirs) {
    const char *owner = atomic_load(&place->name);
    if (owner && !of_one_function(owner, name)) atomic_store(&place->ours, theirs);
}

/* Records that the hooked function `name` is at `theirs` in the driver; `ours` is our entry for it. */
static void known_hook(const char *name, void *theirs, void *ours) {
    if (!theirs) return;
    struct known *place = find(theirs, true);
    void *before = NULL;
    const char *none = NULL;
    atomic_compare_exchange_strong(&place->name, &none, name);
    atomic_compare_exchange_strong(&place->ours, &before, ours);
    dispute(place, name, theirs);
}

/* Records, after all hooks, that `name`, which has no hook, is at `theirs`. If a hook of another function has that
 * address too, as with a stub that only returns an error, the address is no hook's: the hook would be called with
 * arguments of another type. */
static void known_other(const char *name, void *theirs) {
    struct known *place = theirs ? find(theirs, false) : NULL;
    if (place) dispute(place, name, theirs);
}

/* Our entry for the function at `theirs`, or `theirs` itself. */
static void *known_entry(void *theirs) {
    struct known *place = find(theirs, false);
    return place ? atomic_load_explicit(&place->ours, memory_order_acquire) : theirs;
}

/* ---- asking the driver ------------------------------------------------------------------------------------------ */

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

REAL_CALL(cuGetProcAddress, const char *name, void **address, int version, uint64_t flags);
REAL_CALL(cuGetProcAddress_v2, const char *name, void **address, int version, uint64_t flags, int *status);

static void *entry_at(int32_t distance) { return (char *)entry_hooks + distance; }

static const struct entry_hook *hook_of(uint32_t place) {
    const struct entry_hook *end = (const void *)entry_routes;
    for (const struct entry_hook *hook = entry_hooks; hook < end; hook++)
        if (hook->place == place) return hook;
    return NULL;
}

static void tell_symbols(bool hooked) {
    for (uint32_t place = 0; place < names_count; place++) {
        const char *name = name_at(place);
        const struct entry_hook *hook = hook_of(place);
        void *const entry = hook ? entry_at(hook->entry) : moving_entry(place);
        if (entry && hooked) known_hook(name, driver_symbol(name), entry);
        if (!entry && !hooked) known_other(name, driver_symbol(name));
    }
}

/* Drivers before CUDA 12 have only the first form. */
static void *ask(const struct entry_route *route) {
    const char *name = name_at(route->name);
    uint64_t flags = route->per_thread ? PER_THREAD_STREAM : LEGACY_STREAM;
    void *theirs = NULL;
    CUresult result = DRIVER(REAL(cuGetProcAddress_v2)(name, &theirs, (int)route->version, flags, NULL));
    if (result) result = DRIVER(REAL(cuGetProcAddress)(name, &theirs, (int)route->version, flags));
    return result ? NULL : theirs;
}

static void tell_routes(bool hooked) {
    const struct entry_route *end = (const void *)entry_end;
    for (const struct entry_route *route = entry_routes; route < end; route++) {
        void *const entry = route->entry ? entry_at(route->entry) : moving_entry(route->place);
        if (entry && hooked) known_hook(name_at(route->name), ask(route), entry);
        if (!entry && !hooked) known_other(name_at(route->name), ask(route));
    }
}

static void tell_all(void) {
    static _Atomic bool told;
    if (atomic_load_explicit(&told, memory_order_acquire)) return;
    KEEP_ERRNO;
    tell_symbols(true);
    tell_routes(true);
    tell_symbols(false);
    tell_routes(false);
    atomic_store_explicit(&told, true, memory_order_release);
}

/* ---- the hooks -------------------------------------------------------------------------------------------------- */

static void *routed(void *theirs) {
    tell_all();
    return known_entry(theirs);
}

HOOK_CALL(cuGetProcAddress, const char *name, void **address, int version, uint64_t flags) {
    CUresult result = DRIVER(REAL(cuGetProcAddress)(name, address, version, flags));
    if (!result && address && *address) *address = routed(*address);
    return result;
}

HOOK_CALL(cuGetProcAddress_v2, const char *name, void **address, int version, uint64_t flags, int *status) {
    CUresult result = DRIVER(REAL(cuGetProcAddress_v2)(name, address, version, flags, status));
    if (!result && address && *address) *address = routed(*address);
    return result;
}
