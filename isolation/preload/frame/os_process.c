/* Threads, memory, and process identity. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "entries.h"
#include "os_system.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Thread-local storage of the program's objects is also on the stack and may take megabytes: the stack then gets the
 * program's default size. */
enum { STACK_BYTES = 1 << 20, SIGNAL_SET_BYTES = 8 };

/* Exported by glibc since 2.3.2. pthread_atfork is built on it, and old systems do not export that one. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object);

void os_at_fork(void (*child)(void)) { __register_atfork(NULL, NULL, child, NULL); }

/* atexit is built on it; the C library does not export atexit itself. */
extern int __cxa_atexit(void (*call)(void *unused), void *argument, void *object);

void os_at_exit(void (*call)(void *unused)) { __cxa_atexit(call, NULL, NULL); }

int os_pid(void) { return (int)SYSTEM(getpid, 0); }

int os_tid(void) { return (int)SYSTEM(gettid, 0); }

bool os_thread_lives(int thread) {
    KEEP_ERRNO;
    return SYSTEM(tgkill, os_pid(), thread, 0) == 0 || errno != ESRCH;
}

/* Before glibc 2.34 threads are in a library of their own, which this one must not depend on: most processes would load
 * it for nothing. The driver depends on it, so it is loaded. */
static void *thread_symbol(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found) return found;
    dlerror();
    return driver_symbol(name);
}

struct thread_calls {
    int (*create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
    int (*begin)(pthread_attr_t *attributes);
    int (*stack)(pthread_attr_t *attributes, size_t bytes);
    int (*detached)(pthread_attr_t *attributes, int state);
};

static bool find_calls(struct thread_calls *calls) {
    calls->create = thread_symbol("pthread_create");
    calls->begin = thread_symbol("pthread_attr_init");
    calls->stack = thread_symbol("pthread_attr_setstacksize");
    calls->detached = thread_symbol("pthread_attr_setdetachstate");
    return calls->create && calls->begin && calls->stack && calls->detached;
}

/* The return value of a detached thread is never read, so the function may return none. */
union body {
    void (*ours)(void *argument);
    void *(*theirs)(void *argument);
};

bool os_thread(void (*run)(void *argument), void *argument) {
    const union body body = {run};
    struct thread_calls calls;
    pthread_attr_t attributes;
    pthread_t thread;
    uint64_t all = UINT64_MAX, before = 0;
    if (!find_calls(&calls) || calls.begin(&attributes) != 0) return false;
    calls.stack(&attributes, STACK_BYTES);
    calls.detached(&attributes, PTHREAD_CREATE_DETACHED);
    SYSTEM(rt_sigprocmask, SIG_SETMASK, &all, &before, SIGNAL_SET_BYTES);
    int failed = calls.create(&thread, &attributes, body.theirs, argument);
    if (failed == EINVAL && calls.begin(&attributes) == 0) {
        calls.detached(&attributes, PTHREAD_CREATE_DETACHED);
        failed = calls.create(&thread, &attributes, body.theirs, argument);
    }
    SYSTEM(rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_SET_BYTES);
    if (failed) errno = failed;
    return !failed;
}

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

const char *os_environment(const char *name) { return secure_getenv(name); }

bool os_own_path(char path[OS_PATH]) {
    Dl_info info;
    size_t length = dladdr(entry_spares, &info) && info.dli_fname ? strlen(info.dli_fname) : 0;
    if (!length || length >= OS_PATH) return false;
    memcpy(path, info.dli_fname, length + 1);
    return true;
}

/* Removes the last component of a path; false if there is only one. */
static bool cut(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    return slash;
}

bool os_beside(const char *name, char path[OS_PATH]) {
    static const char lib[] = "/lib";
    size_t length = strlen(name), end;
    if (!os_own_path(path) || path[0] != '/' || !cut(path)) return false;
    end = strlen(path);
    if (end < sizeof lib - 1 || memcmp(path + end - (sizeof lib - 1), lib, sizeof lib) != 0) return false;
    cut(path);
    end = strlen(path);
    if (end + length + 2 > OS_PATH) return false;
    path[end] = '/';
    memcpy(path + end + 1, name, length + 1);
    return true;
}

/* The socket in the folder of the container's claim. */
static bool claim_path(char path[OS_PATH]) {
    static const char claims[] = OS_PLACE "/claims/", socket[] = "/broker";
    char *name = path + sizeof claims - 1;
    memcpy(path, claims, sizeof claims);
    if (!os_only_name(path, name)) return false;
    memcpy(name + strlen(name), socket, sizeof socket);
    return true;
}

void os_broker_path(char path[OS_PATH]) {
    KEEP_ERRNO;
    struct os_file file;
    if (os_beside("broker", path) && os_look(path, &file) && file.is_socket) return;
    if (claim_path(path)) return;
    memcpy(path, OS_PLACE "/broker", sizeof OS_PLACE "/broker");
}

bool os_broker_says(const char *name) {
    KEEP_ERRNO;
    char path[OS_PATH];
    struct os_file file;
    os_broker_path(path);
    char *last = strrchr(path, '/') + 1;
    if ((size_t)(last - path) + strlen(name) + 1 > sizeof path) return false;
    memcpy(last, name, strlen(name) + 1);
    return os_look(path, &file);
}
