/* Time, locks and waiting. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "os_system.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

enum { SECOND = 1000 * OS_MS };
enum { FREE, HELD, WANTED };

static struct timespec to_timespec(uint64_t ns) {
    return (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
}

uint64_t os_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

void os_sleep(uint64_t ns) {
    KEEP_ERRNO;
    struct timespec left = to_timespec(ns);
    while (SYSTEM(nanosleep, &left, &left) == -1 && errno == EINTR) continue;
}

void os_be_prompt(void) {
    KEEP_ERRNO;
    SYSTEM(prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

static void wait_on(const void *word, int flags, uint32_t value, uint64_t deadline) {
    KEEP_ERRNO;
    struct timespec until = to_timespec(deadline);
    const struct timespec *limit = deadline == OS_NEVER ? NULL : &until;
    SYSTEM(futex, word, FUTEX_WAIT_BITSET | flags, value, limit, NULL, FUTEX_BITSET_MATCH_ANY);
}

void os_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline) {
    wait_on(word, FUTEX_PRIVATE_FLAG, value, deadline);
}

void os_wait_shared(const uint32_t *word, uint32_t value, uint64_t deadline) { wait_on(word, 0, value, deadline); }

void os_wake(_Atomic uint32_t *word, unsigned how_many) {
    KEEP_ERRNO;
    SYSTEM(futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, how_many > INT32_MAX ? INT32_MAX : how_many, NULL, NULL, 0);
}

void os_lock(struct os_lock *lock) {
    uint32_t seen = FREE;
    if (atomic_compare_exchange_strong_explicit(&lock->word, &seen, HELD, memory_order_acquire, memory_order_relaxed))
        return;
    while (atomic_exchange_explicit(&lock->word, WANTED, memory_order_acquire) != FREE)
        os_wait(&lock->word, WANTED, OS_NEVER);
}

void os_unlock(struct os_lock *lock) {
    if (atomic_exchange_explicit(&lock->word, FREE, memory_order_release) == WANTED) os_wake(&lock->word, 1);
}
