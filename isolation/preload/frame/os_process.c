/* Threads and processes. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "entries.h"
#include "os_system.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

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
