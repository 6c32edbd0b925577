/* Memory mappings. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "os_system.h"

#include <sys/mman.h>

static void *map(void *address, size_t bytes, int protection, int flags, int descriptor) {
#ifdef __SANITIZE_THREAD__
    /* ThreadSanitizer must learn that the mapping replaced what was there before. */
    void *seen = mmap(address, bytes, protection, flags, descriptor, 0);
    return seen == MAP_FAILED ? NULL : seen;
#else
    long mapped = SYSTEM(mmap, address, bytes, protection, flags, descriptor, 0);
    return mapped == -1 ? NULL : (void *)mapped;
#endif
}

void *os_map(size_t bytes) { return map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1); }

void *os_map_lazily(size_t bytes) {
    return map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

const void *os_map_shared(int descriptor, size_t bytes, void *address) {
    return map(address, bytes, PROT_READ, MAP_SHARED | (address ? MAP_FIXED : 0), descriptor);
}

void os_unmap(void *address, size_t bytes) {
    KEEP_ERRNO;
#ifdef __SANITIZE_THREAD__
    munmap(address, bytes); /* see map() */
#else
    SYSTEM(munmap, address, bytes);
#endif
}
