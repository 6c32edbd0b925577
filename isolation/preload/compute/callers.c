/* What each thread remembers of lanes, and the threads that are inside the driver with a launch. A place belongs to its
 * thread until that ends. Threads do not report their end; it is checked when another thread needs a place. */
#include "lanes.h"

__thread struct lane_cache lane_cache;
_Atomic uint32_t lanes_serial = 1;

void lanes_void(void) {
    if (atomic_fetch_add(&lanes_serial, 1) + 1 == 0) atomic_fetch_add(&lanes_serial, 1);
}

enum { MOST_CALLERS = 2048 };

static struct caller callers[MOST_CALLERS];
static _Atomic unsigned reached; /* index beyond the last place ever taken */

static bool take(struct caller *caller, int thread) {
    int before = atomic_load(&caller->thread);
    if (before && before != thread && os_thread_lives(before)) return false;
    if (!atomic_compare_exchange_strong(&caller->thread, &before, thread)) return false;
    atomic_store(&caller->inside, NULL); /* left over from a thread that ended inside the driver */
    return true;
}

static struct caller *unused(int thread) {
    unsigned end = atomic_load(&reached);
    while (end < MOST_CALLERS)
        if (atomic_compare_exchange_weak(&reached, &end, end + 1))
            return take(&callers[end], thread) ? &callers[end] : unused(thread);
    return NULL;
}

/* Once every place has been taken, each search continues where the last one found a place. */
static struct caller *left_behind(int thread) {
    static _Atomic unsigned next;
    for (unsigned n = 0; n < MOST_CALLERS; n++) {
        struct caller *caller = &callers[atomic_fetch_add(&next, 1) % MOST_CALLERS];
        if (take(caller, thread)) return caller;
    }
    return NULL;
}

struct caller *caller_here(void) {
    if (lane_cache.caller) return lane_cache.caller;
    const int thread = os_tid();
    struct caller *caller = unused(thread);
    lane_cache.caller = caller ? caller : left_behind(thread);
    return lane_cache.caller;
}

void callers_each(void (*each)(struct lane *lane, void *argument), void *argument) {
    const unsigned end = atomic_load(&reached);
    for (struct caller *caller = callers; caller < callers + end; caller++) {
        struct lane *lane = atomic_load_explicit(&caller->inside, memory_order_acquire);
        if (lane && os_thread_lives(atomic_load(&caller->thread))) each(lane, argument);
    }
}

void callers_forget(void) {
    const unsigned end = atomic_load(&reached);
    for (unsigned n = 0; n < end; n++) callers[n] = (struct caller){0};
    atomic_store(&reached, 0);
    lane_cache = (struct lane_cache){0};
}
