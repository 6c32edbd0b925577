/* A clock that never underestimates, at less than half the cost of the real one: the processor's counter.
 *
 * Code that only needs to know whether a time is still ahead reads it first; if the answer is "perhaps not", the real
 * clock decides. It is accurate from some milliseconds after its start, on processors whose counter has a constant
 * rate; before that, and elsewhere, the answer is always "perhaps not".
 */
#pragma once

#include "../common/words.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

struct ticks {
    bool usable;
    u64 began, began_ns;
    _Atomic u64 first; /* the rate that was measured first, used by all */
    _Atomic u64 rate;   /* ns per tick, times 2^32, slightly increased; 0: unknown */
    _Atomic u64 offset; /* time <= ticks * rate + offset */
};

static inline u64 ticks_count(void) {
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
}

static inline u64 ticks_ns(u64 count, u64 rate) { return (u64)(((unsigned __int128)count * rate) >> 32); }

/* Upper bound of the current time; UINT64_MAX if unknown. Thread-safe. */
static inline u64 ticks_latest(const struct ticks *ticks) {
    u64 rate = atomic_load_explicit(&ticks->rate, memory_order_acquire);
    if (!rate) return UINT64_MAX;
    u64 offset = atomic_load_explicit(&ticks->offset, memory_order_acquire); /* read before the counter, so never
                                                                              * newer */
    return ticks_ns(ticks_count(), rate) + offset;
}

/* Called before other threads use it. */
void ticks_begin(struct ticks *ticks);

/* The real time, which also calibrates `ticks`. Thread-safe. */
u64 ticks_now(struct ticks *ticks);
