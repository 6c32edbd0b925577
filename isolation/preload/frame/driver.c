/* Locates and opens the driver when its first function is called, and fills slots.
 *
 * The driver is found by path, since by name the dynamic linker would find this very library. The places where the
 * installer of this library puts the driver come first, then those of the dynamic linker: LD_LIBRARY_PATH, its cache,
 * the usual folders. Our own files are skipped, under any path and version.
 *
 * No lock is held here: the dynamic linker has its own, which a thread may hold while it runs a library's constructor
 * that calls us. Several threads may do the same work at once, with the same result.
 */
#define _GNU_SOURCE
#include "../core/os.h"
#include "entries.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#ifdef __x86_64__
#define TRIPLET "x86_64-linux-gnu"
#else
#define TRIPLET "aarch64-linux-gnu"
#endif

/* ---- finding ---------------------------------------------------------------------------------------------------- */

enum { CACHE_BYTES = 16 << 20 };

/* Exported by both objects, so that each recognizes the other. */
extern EXPORT const char partage_library[];
const char partage_library[] = "partage";

static const char folders[][32] = {
    "/usr/lib/" TRIPLET,     "/lib/" TRIPLET,    "/usr/lib64", "/lib64", "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib", "/usr/lib/wsl/lib", "/usr/lib",   "/lib",
};

struct search {
    struct os_file own; /* this object */
    void *handle;
};

static bool same_file(const struct os_file *one, const struct os_file *other) {
    return one->device == other->device && one->inode == other->inode;
}

/* Whether the object itself has the mark, as opposed to one of its dependencies. */
static bool is_of_ours(void *handle) {
    Dl_info mark, any;
    void *marked = dlsym(handle, "partage_library"), *function = dlsym(handle, library.start);
    return marked && function && dladdr(marked, &mark) && dladdr(function, &any) && mark.dli_fbase == any.dli_fbase;
}

open_function *next_dlopen(void) { return (open_function *)dlsym(RTLD_NEXT, "dlopen"); }

static bool try_path(const char *path, void *argument) {
    struct search *search = argument;
    struct os_file file;
    open_function *const open = next_dlopen();
    if (!open || !os_look(path, &file) || same_file(&file, &search->own)) return false;
    void *handle = open(path, RTLD_NOW | RTLD_LOCAL);
    if (handle && is_of_ours(handle)) {
        dlclose(handle);
        handle = NULL;
    }
    search->handle = handle;
    return handle != NULL;
}

static bool try_folder(struct search *search, const char *folder, size_t length) {
    char path[OS_PATH];
    size_t file = strlen(library.file);
    if (!length || length + file + 2 > sizeof path || memchr(folder, '$', length)) return false;
    memcpy(path, folder, length);
    path[length] = '/';
    memcpy(path + length + 1, library.file, file + 1);
    return try_path(path, search);
}

/* <X>/driver if this object is in <X>/lib, then the driver's folder in containers. */
static bool try_beside(struct search *search) {
    char folder[OS_PATH];
    if (os_beside("driver", folder) && try_folder(search, folder, strlen(folder))) return true;
    return try_folder(search, OS_PLACE "/driver", sizeof OS_PLACE "/driver" - 1);
}

static bool try_environment(struct search *search) {
    const char *rest = os_environment("LD_LIBRARY_PATH");
    while (rest && *rest) {
        size_t length = strcspn(rest, ":;");
        if (try_folder(search, rest, length)) return true;
        rest += length + (rest[length] != '\0');
    }
    return false;
}

static bool try_cache(struct search *search) {
    size_t bytes;
    void *cache = os_read("/etc/ld.so.cache", CACHE_BYTES, &bytes);
    if (!cache) return false;
    bool found = ld_cache_find(cache, bytes, library.file, try_path, search);
    os_unmap(cache, bytes);
    return found;
}

static bool try_usual(struct search *search) {
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (try_folder(search, folders[i], strlen(folders[i]))) return true;
    return false;
}

/* Written once, by the first thread that has a hint. */
enum { NO_HINT, IS_WRITTEN, HINT };
static struct {
    _Atomic uint32_t state;
    char path[OS_PATH];
} hint;

void driver_hint(const char *path) {
    const size_t bytes = strlen(path) + 1;
    uint32_t before = NO_HINT;
    if (bytes > sizeof hint.path || !atomic_compare_exchange_strong(&hint.state, &before, IS_WRITTEN)) return;
    memcpy(hint.path, path, bytes);
    atomic_store_explicit(&hint.state, HINT, memory_order_release);
}

static bool try_hint(struct search *search) {
    return atomic_load_explicit(&hint.state, memory_order_acquire) == HINT && try_path(hint.path, search);
}

/* The handle from dlopen; NULL if there is no driver. */
static void *find_driver(void) {
    struct search search = {0};
    char own[OS_PATH];
    if (os_own_path(own)) os_look(own, &search.own);
    (void)(try_beside(&search) || try_environment(&search) || try_cache(&search) || try_usual(&search) ||
           try_hint(&search));
    dlerror(); /* discard these errors: the program must not see them */
    return search.handle;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

__thread unsigned driver_depth;

_Atomic uint32_t entry_ready;

static const char no_driver;
static const void *_Atomic driver; /* a handle, or &no_driver; NULL: not searched yet */

static const char *name_of(uint32_t place) {
    if (place < names_count) return name_at(place);
    Dl_info info;
    const char *entry = entry_spares + (size_t)(place - names_count) * ENTRY_SPARE_BYTES;
    return dladdr(entry, &info) && info.dli_sname ? info.dli_sname : "";
}

/* A missing name leaves no dlerror behind that the program could take for its own. */
static void *symbol_in(void *handle, const char *name) {
    void *found = handle ? dlsym(handle, name) : NULL;
    if (handle && !found) dlerror();
    return found;
}

static entry_function *fill(void *handle, uint32_t place) {
    const char *name = name_of(place);
    void *found = symbol_in(handle, name);
    if (!found)
        found = library.missing(name, handle != NULL);
    else if (library.through)
        found = library.through(place, name, found);
    entry_function *function = (entry_function *)found;
    atomic_store_explicit(&entry_slots[place], function, memory_order_release);
    return function;
}

/* Initialization, done before any function is called. The driver's constructors may call exported names; those calls
 * are not the program's. */
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

void *driver_symbol(const char *name) { return symbol_in(driver_handle(), name); }

entry_function *entry_target(uint32_t place) {
    KEEP_ERRNO;
    void *handle = driver_handle();
    entry_function *function = atomic_load_explicit(&entry_slots[place], memory_order_acquire);
    return function ? function : fill(handle, place);
}
