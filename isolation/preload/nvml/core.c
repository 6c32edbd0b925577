/* Finds libcuda.so.1, which has the session with the broker: among what is loaded, else beside this object. There is no
 * need for it by name, or a program that uses NVML alone would not start where one of the two is missing. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "../core/shared.h"
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static const char file[] = "libcuda.so.1";

static const struct partage_core *beside(void) {
    char path[OS_PATH];
    char *slash = os_own_path(path) ? strrchr(path, '/') : NULL;
    if (!slash || (size_t)(slash - path) + 1 + sizeof file > sizeof path) return NULL;
    memcpy(slash + 1, file, sizeof file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return handle ? dlsym(handle, "partage_core") : NULL;
}

const struct partage_core *core(void) {
    static const struct partage_core *_Atomic known;
    const struct partage_core *found = atomic_load_explicit(&known, memory_order_acquire);
    if (found) return found;
    int before = errno;
    found = dlsym(RTLD_DEFAULT, "partage_core");
    if (!found) found = beside();
    if (!found) dlerror(); /* nobody else's business */
    if (found && found->bytes != sizeof *found) found = NULL;
    atomic_store_explicit(&known, found, memory_order_release);
    errno = before;
    return found;
}
