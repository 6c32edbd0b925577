/* The library's one thread: answers the broker's notifications, runs the time slices' deadlines, and reconnects to a
 * broker that was unavailable. */
#include "session.h"

#include <stdatomic.h>

enum { FIRST_TICK_MS = 100, SHORTEST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 100 };
enum { CONNECTING_MS = 1000, LONGEST_CONNECTING_MS = 4000 };

#define EXIT_WAIT (1000ull * OS_MS) /* a driver call that keeps the listener longer probably hangs */

static _Atomic int listener; /* the process that the thread belongs to */
static _Atomic bool watches; /* forks and the exit */

/* The listener calls the driver only in state WORKS. An exiting thread announces the exit, and waits for work in
 * progress. */
enum { RESTS, WORKS, IS_LAST_WORK, IS_OVER };
static _Atomic uint32_t work;

static void work_begin(void) {
    uint32_t before = RESTS;
    if (atomic_compare_exchange_strong(&work, &before, WORKS)) return;
    for (;;) os_wait(&work, before, OS_NEVER);
}

static void work_end(void) {
    uint32_t before = WORKS;
    if (atomic_compare_exchange_strong(&work, &before, RESTS)) return;
    atomic_store(&work, IS_OVER);
    os_wake(&work, 1);
}

static bool is_over(void) { return atomic_load(&work) >= IS_LAST_WORK; }

static void finish(void) {
    const uint64_t deadline = os_now() + EXIT_WAIT;
    uint32_t before = RESTS;
    if (atomic_compare_exchange_strong(&work, &before, IS_OVER)) return;
    if (before == WORKS && !atomic_compare_exchange_strong(&work, &before, IS_LAST_WORK)) return finish();
    while (atomic_load(&work) == IS_LAST_WORK && os_now() < deadline) os_wait(&work, IS_LAST_WORK, deadline);
}

/* What the program launches from here on is not seen by our thread. */
static void exits(void *unused) {
    (void)unused;
    KEEP_ERRNO;
    finish();
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (part->exiting) part->exiting();
}

/* WIRE_LINE has served its purpose: this thread is awake. */
static void hear(const struct wire *hint) {
    if (hint->version != WIRE_VERSION || hint->card >= MOST_CARDS) return;
    work_begin();
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (part->hint) part->hint(hint);
    work_end();
}

/* One attempt; another thread that holds the turn may be connecting too. */
static bool come_back(const struct os_socket *ended, uint64_t connecting) {
    if (!session_enter(os_now() + SHORTEST_PAUSE_MS * (uint64_t)OS_MS)) return false;
    const bool done = session_replace(ended, os_now() + connecting * OS_MS);
    session_leave();
    return done;
}

static uint64_t longer(uint64_t before, uint64_t longest) { return 2 * before < longest ? 2 * before : longest; }

static uint64_t tick(void) {
    uint64_t due = OS_NEVER;
    work_begin();
    for (const struct part *part = session_parts; part < parts_end(); part++) {
        const uint64_t next = part->tick ? part->tick() : OS_NEVER;
        if (next < due) due = next;
    }
    work_end();
    return due;
}

static void miss_broker(const struct os_socket *signals) {
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (part->away) part->away();
    if (session_has(signals)) return;
    for (const struct part *part = session_parts; part < parts_end(); part++) /* another thread has connected */
        if (part->back) part->back();
}

static void listen_to_broker(void *unused) {
    uint64_t pause = SHORTEST_PAUSE_MS, connecting = CONNECTING_MS;
    uint64_t due = os_now() + FIRST_TICK_MS * (uint64_t)OS_MS;
    (void)unused;
    work_begin();
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (part->listening) part->listening();
    work_end();
    for (;;) {
        struct wire hint;
        const struct os_socket signals = session_signals();
        if (os_receive(&signals, &hint, sizeof hint, NULL, due)) {
            hear(&hint);
            pause = SHORTEST_PAUSE_MS;
            connecting = CONNECTING_MS;
        } else if (errno != ETIMEDOUT && errno != EMSGSIZE && !come_back(&signals, connecting)) {
            miss_broker(&signals);
            os_sleep(pause * OS_MS);
            pause = longer(pause, LONGEST_PAUSE_MS);
            connecting = longer(connecting, LONGEST_CONNECTING_MS); /* the machine leaves us little processor time */
        }
        due = tick();
    }
}

/* The parent's thread does not exist in a forked child. */
static void forget(void) {
    atomic_store(&listener, 0);
    atomic_store(&work, RESTS);
}

static void watch(void) {
    if (atomic_exchange(&watches, true)) return;
    os_at_fork(forget);
    os_at_exit(exits);
}

/* Without the thread nothing becomes incorrect: lent memory that is unused stays lent, and samples of this process
 * count only as bounds. So a process that may not create a thread runs on. */
void session_listen(void) {
    const int pid = os_pid();
    int before = atomic_load(&listener);
    if (before == pid || !atomic_compare_exchange_strong(&listener, &before, pid)) return;
    watch();
    if (!os_thread(listen_to_broker, NULL)) atomic_store(&listener, 0);
}

bool session_listens(void) { return atomic_load(&listener) != 0 && !is_over(); }
