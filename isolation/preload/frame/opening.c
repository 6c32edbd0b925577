/* Opens the driver when its first function is called, and fills slots.
 *
 * No lock is held here, as the dynamic linker has one of its own, which a thread may hold while a library's constructor
 * runs that calls us. Several threads may do the same work at once, and find the same.
 */
#define _GNU_SOURCE
#include "../core/os.h"
#include "entries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

__thread unsigned driver_depth;

_Atomic uint32_t entry_ready;

static const char no_driver;
static const void *_Atomic driver; /* a handle, or &no_driver; NULL: not looked for */

static const char *name_of(uint32_t place) {
    if (place < names_count) return name_at(place);
    Dl_info info;
    const char *entry = entry_spares + (size_t)(place - names_count) * ENTRY_SPARE_BYTES;
    return dladdr(entry, &info) && info.dli_sname ? info.dli_sname : "";
}

/* A name that is not there leaves nothing behind that the program could take for an error of its own. */
static void *symbol_in(void *handle, const char *name) {
    void *found = handle ? dlsym(handle, name) : NULL;
    if (handle && !found) dlerror();
    return found;
}

static entry_function *fill(void *handle, uint32_t place) {
    const char *name = name_of(place);
    void *found = symbol_in(handle, name);
    if (!found) found = library.missing(name, handle != NULL);
    entry_function *function = (entry_function *)found;
    atomic_store_explicit(&entry_slots[place], function, memory_order_release);
    return function;
}

/* What happens once, before any function is called. The driver's constructors may call exported names, which are then
 * not the program's. */
static void *open_driver(void) {
    driver_depth++;
    void *handle = find_driver();
    const struct entry_hook *end = (const void *)entry_routes;
    for (const struct entry_hook *hook = entry_hooks; hook < end; hook++) fill(handle, hook->place);
    driver_depth--;
    atomic_store_explicit(&driver, handle ? handle : &no_driver, memory_order_release);
    atomic_store_explicit(&entry_ready, 1, memory_order_release);
    return handle;
}

static void *driver_handle(void) {
    const void *known = atomic_load_explicit(&driver, memory_order_acquire);
    if (!known) return open_driver();
    return known == &no_driver ? NULL : (void *)known;
}

bool driver_present(void) {
    int before = errno;
    bool there = driver_handle() != NULL;
    errno = before;
    return there;
}

void *driver_symbol(const char *name) { return symbol_in(driver_handle(), name); }

entry_function *entry_target(uint32_t place) {
    int before = errno;
    void *handle = driver_handle();
    entry_function *function = atomic_load_explicit(&entry_slots[place], memory_order_acquire);
    if (!function) function = fill(handle, place);
    errno = before;
    return function;
}
