/* cuGetProcAddress: the driver answers, with the caller's own version and flags; an address that is a hooked function's
 * is replaced by our entry for it. Names are not looked at: an empty one passes, and so does all that we do not know.
 *
 * The addresses are known from the driver: as its exported symbols, and as it gives them out itself for each version
 * and default stream (names/routes.def), which need not be the same.
 */
#include "../frame/entries.h"
#include "driver.h"
#include "known.h"

#include <errno.h>
#include <stdatomic.h>

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
        if (hook && hooked) known_hook(name, driver_symbol(name), entry_at(hook->entry));
        if (!hook && !hooked) known_other(name, driver_symbol(name));
    }
}

/* Drivers before CUDA 12 have the first form alone. */
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
        if (hooked && route->entry) known_hook(name_at(route->name), ask(route), entry_at(route->entry));
        if (!hooked && !route->entry) known_other(name_at(route->name), ask(route));
    }
}

static void tell_all(void) {
    static _Atomic bool told;
    if (atomic_load_explicit(&told, memory_order_acquire)) return;
    int before = errno;
    tell_symbols(true);
    tell_routes(true);
    tell_symbols(false);
    tell_routes(false);
    atomic_store_explicit(&told, true, memory_order_release);
    errno = before;
}

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
