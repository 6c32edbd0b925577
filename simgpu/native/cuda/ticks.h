/* A clock that never says too little, for less than half of what the real one costs: the processor's counter.
 *
 * Code that only needs to know that something is still ahead asks it first; where it says "perhaps not" the real clock
 * decides. It is right from some milliseconds after its beginning on, on processors whose counter always runs at one
 * speed; before, and elsewhere, it always says "perhaps not".
 */
#pragma once

#include "../common/words.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

struct ticks {
    bool usable;
    u64 began, began_ns;
    _Atomic u64 first; /* the rate that was measured first, which is everybody's */
    _Atomic u64 rate;   /* ns of a tick, times 2^32, and a little more than that; 0: not known yet */
    _Atomic u64 offset; /* time = ticks * rate + offset, or less */
};

static inline u64 ticks_count(void) {
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
}

static inline u64 ticks_ns(u64 count, u64 rate) { return (u64)(((unsigned __int128)count * rate) >> 32); }

/* The time that it is at most; UINT64_MAX where nothing is known. Any thread. */
static inline u64 ticks_latest(const struct ticks *ticks) {
    u64 rate = atomic_load_explicit(&ticks->rate, memory_order_acquire);
    if (!rate) return UINT64_MAX;
    u64 offset = atomic_load_explicit(&ticks->offset, memory_order_acquire); /* before the counter: never of later */
    return ticks_ns(ticks_count(), rate) + offset;
}

/* Before anybody else uses it. */
void ticks_begin(struct ticks *ticks);

/* The real time, from which `ticks` learns. Any thread. */
u64 ticks_now(struct ticks *ticks);
