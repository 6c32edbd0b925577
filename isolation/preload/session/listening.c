/* The one thread of ours: answers the broker's hints, looks after leases, and comes back to a broker that was away. */
#include "session.h"

#include <errno.h>
#include <stdatomic.h>

enum { SOON_MS = 100, LATER_MS = 1000, SHORTEST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 100 };
enum { CONNECTING_MS = 1000, LONGEST_CONNECTING_MS = 4000 };

static _Atomic int listener; /* the process whose thread it is */

static void hear(const struct wire *hint) {
    if (hint->version != WIRE_VERSION || hint->card >= MOST_CARDS) return;
    if (hint->what == WIRE_RECALL) accounts_recalled(hint->card);
    if (hint->what == WIRE_REPORT) accounts_report(hint->card, hint->number);
    /* WIRE_LINE has done what it was for: this thread is awake. */
}

/* One attempt; whoever else has the turn is connecting too. */
static bool come_back(const struct os_socket *ended, uint64_t connecting) {
    if (!session_enter(os_now() + SHORTEST_PAUSE_MS * (uint64_t)OS_MS)) return false;
    const bool done = session_replace(ended, os_now() + connecting * OS_MS);
    session_leave();
    return done;
}

static uint64_t longer(uint64_t before, uint64_t longest) { return 2 * before < longest ? 2 * before : longest; }

/* Whatever hints come in between. */
static uint64_t tick_if_due(uint64_t due) {
    const uint64_t now = os_now();
    if (now < due) return due;
    return now + (memory_tick() ? SOON_MS : LATER_MS) * (uint64_t)OS_MS;
}

static void listen_to_broker(void *unused) {
    uint64_t pause = SHORTEST_PAUSE_MS, connecting = CONNECTING_MS;
    uint64_t due = os_now() + SOON_MS * (uint64_t)OS_MS, leases = due;
    (void)unused;
    compute_listening();
    for (;;) {
        struct wire hint;
        const struct os_socket signals = session_signals();
        if (os_receive(&signals, &hint, sizeof hint, NULL, leases < due ? leases : due)) {
            hear(&hint);
            pause = SHORTEST_PAUSE_MS;
            connecting = CONNECTING_MS;
        } else if (errno != ETIMEDOUT && errno != EMSGSIZE && !come_back(&signals, connecting)) {
            compute_away();
            if (!session_has(&signals)) compute_back(); /* another thread's doing */
            os_sleep(pause * OS_MS);
            pause = longer(pause, LONGEST_PAUSE_MS);
            connecting = longer(connecting, LONGEST_CONNECTING_MS); /* on a machine that has little time for us */
        }
        due = tick_if_due(due);
        leases = compute_tick();
    }
}

/* Without the thread nothing becomes untrue: what is lent and unused stays lent, and samples of this process count only
 * as bounds. So a process that may not have one runs on. */
void session_listen(void) {
    const int pid = os_pid();
    int before = atomic_load(&listener);
    if (before == pid || !atomic_compare_exchange_strong(&listener, &before, pid)) return;
    if (!os_thread(listen_to_broker, NULL)) atomic_store(&listener, 0);
}

bool session_listens(void) { return atomic_load(&listener) != 0; }

void listening_forget(void) { atomic_store(&listener, 0); }
