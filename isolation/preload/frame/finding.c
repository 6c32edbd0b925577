/* Where the real driver is: by path, since by name the dynamic linker would find this very library.
 *
 * First the places in which the one who mounted this library puts the driver, then where the dynamic linker would look:
 * LD_LIBRARY_PATH, its cache, the usual folders. Files of ours are skipped, whatever their path and version.
 */
#define _GNU_SOURCE
#include "../core/os.h"
#include "entries.h"

#include <dlfcn.h>
#include <string.h>

#ifdef __x86_64__
#define TRIPLET "x86_64-linux-gnu"
#else
#define TRIPLET "aarch64-linux-gnu"
#endif

enum { CACHE_BYTES = 16 << 20 };

/* Both objects export it: by this they know each other. */
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

/* Whether it is the object itself that has the mark, not one that it needs. */
static bool is_of_ours(void *handle) {
    Dl_info mark, any;
    void *marked = dlsym(handle, "partage_library"), *function = dlsym(handle, name_at(0));
    return marked && function && dladdr(marked, &mark) && dladdr(function, &any) && mark.dli_fbase == any.dli_fbase;
}

static bool try_path(const char *path, void *argument) {
    struct search *search = argument;
    struct os_file file;
    if (!os_look(path, &file) || same_file(&file, &search->own)) return false;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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

/* <X>/driver where this object is in <X>/lib, and where containers have it. */
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

void *find_driver(void) {
    struct search search = {0};
    char own[OS_PATH];
    if (os_own_path(own)) os_look(own, &search.own);
    (void)(try_beside(&search) || try_environment(&search) || try_cache(&search) || try_usual(&search));
    dlerror(); /* what failed here is nobody else's business */
    return search.handle;
}
