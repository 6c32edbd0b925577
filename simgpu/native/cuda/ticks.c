#include "ticks.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

enum {
    LEARNT_NS = 10000000,
    MORE = 64,      /* rate is increased by 1/64, so that drift never makes it too low */
    APART_NS = 500, /* difference between two processors' counters, plus reordered reads */
};

static bool runs_at_one_speed(void) {
#ifdef __x86_64__
    enum { POWER_MANAGEMENT = 0x80000007, INVARIANT = 1 << 8 };
    unsigned a, b, c, d;
    return __get_cpuid(POWER_MANAGEMENT, &a, &b, &c, &d) && (d & INVARIANT);
#else
    return false;
#endif
}

void ticks_begin(struct ticks *ticks) {
    ticks->usable = runs_at_one_speed();
    ticks->began = ticks_count();
    ticks->began_ns = sim_now();
}

/* Several threads may measure at once; all must use one rate. */
static u64 measured(struct ticks *ticks, u64 count, u64 now) {
    u64 rate = atomic_load(&ticks->first);
    if (rate || !ticks->usable || now - ticks->began_ns < LEARNT_NS || count <= ticks->began) return rate;
    u64 mine = (u64)(((unsigned __int128)(now - ticks->began_ns) << 32) / (count - ticks->began));
    mine += mine / MORE;
    return atomic_compare_exchange_strong(&ticks->first, &rate, mine) ? mine : rate;
}

/* The counter is read before the clock, so at that count the time was at most this. */
u64 ticks_now(struct ticks *ticks) {
    u64 count = ticks_count(), now = sim_now();
    u64 rate = measured(ticks, count, now);
    if (!rate) return now;
    atomic_store_explicit(&ticks->offset, now + APART_NS - ticks_ns(count, rate), memory_order_relaxed);
    atomic_store_explicit(&ticks->rate, rate, memory_order_release);
    return now;
}
