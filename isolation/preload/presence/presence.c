#include "presence.h"

#include <stdatomic.h>

#define MOMENT_NS (2ull * OS_MS)

static _Atomic uint32_t inside, shut, waiting;
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t news;

void presence_news(void) {
    atomic_fetch_add(&news, 1);
    os_wake(&news, 1);
}

uint32_t presence_news_seen(void) { return atomic_load(&news); }

void presence_await_news(uint32_t seen, uint64_t deadline) { os_wait(&news, seen, deadline); }

static void go_out(void) {
    if (atomic_fetch_sub(&inside, 1) == 1 && atomic_load(&shut)) os_wake(&inside, 1);
}

static void wait_at_door(void) {
    KEEP_ERRNO;
    atomic_fetch_add(&waiting, 1);
    presence_news();
    while (atomic_load(&shut)) os_wait(&shut, 1, OS_NEVER);
    atomic_fetch_sub(&waiting, 1);
}

/* Counts first, then checks the barrier; presence_shut works in the opposite order, so at least one of the two sees the
 * other. */
void presence_enter(void) {
    if (depth++) return;
    for (;;) {
        atomic_fetch_add(&inside, 1);
        if (!atomic_load(&shut)) return;
        go_out();
        wait_at_door();
    }
}

void presence_leave(void) {
    if (!--depth) go_out();
}

void presence_exempt(void) { depth = 1; }

void presence_shut(void) { atomic_store(&shut, 1); }

bool presence_is_empty(uint64_t deadline) {
    for (;;) {
        const uint32_t now = atomic_load(&inside);
        if (!now) return true;
        if (os_now() >= deadline) return false;
        os_wait(&inside, now, deadline);
    }
}

void presence_open(void) {
    atomic_store(&shut, 0);
    os_wake(&shut, INT32_MAX);
}

bool presence_is_shut(void) { return atomic_load(&shut); }

uint32_t presence_waiting(void) { return atomic_load(&waiting); }

void presence_await(void) {
    if (presence_is_shut())
        wait_at_door();
    else
        os_sleep(MOMENT_NS);
}

void presence_forget(void) {
    atomic_store(&inside, 0);
    atomic_store(&shut, 0);
    atomic_store(&waiting, 0);
    depth = 0;
}
