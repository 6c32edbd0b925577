/* Exports the preload library's socket functions to a test. */
#define _GNU_SOURCE
#include "../../../../isolation/preload/frame/os_files.c"
#include "../../../../isolation/preload/frame/os_sockets.c"
#include "../../../../isolation/preload/frame/os_time.c"

#include <sys/mman.h>

void *os_map(size_t bytes) {
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void os_unmap(void *address, size_t bytes) { munmap(address, bytes); }

EXPORT int try_connect(struct os_socket *made, const char *path, unsigned ms);
EXPORT int try_send(const struct os_socket *socket, const void *packet, size_t bytes, unsigned ms);
EXPORT int try_receive(const struct os_socket *socket, void *packet, size_t bytes, int *descriptor, unsigned ms);
EXPORT void try_disconnect(struct os_socket *socket);

static uint64_t in(unsigned ms) { return ms ? os_now() + ms * (uint64_t)OS_MS : 0; }

int try_connect(struct os_socket *made, const char *path, unsigned ms) {
    return os_connect(made, path, in(ms)) ? 0 : errno;
}

int try_send(const struct os_socket *socket, const void *packet, size_t bytes, unsigned ms) {
    return os_send(socket, packet, bytes, in(ms)) ? 0 : errno;
}

int try_receive(const struct os_socket *socket, void *packet, size_t bytes, int *descriptor, unsigned ms) {
    return os_receive(socket, packet, bytes, descriptor, in(ms)) ? 0 : errno;
}

void try_disconnect(struct os_socket *socket) { os_disconnect(socket); }
