/* The thread that moves memory off the card and back, as ordered by the broker. */
#include "migration.h"

#include "../compute/gate.h"
#include "../compute/lanes.h"
#include "../presence/presence.h"

#include <stdatomic.h>

#define AGAIN_NS (1ull * OS_MS) /* delay before a failed step is retried */
#define TELL_NS (10ull * OS_MS) /* interval of reports while a move is under way */
#define SELDOM_NS (1000ull * OS_MS)
#define EXIT_WAIT (1000ull * OS_MS)

#define ALL UINT64_MAX

static struct {
    struct os_lock lock;
    uint64_t resident;
    uint32_t number;
} last = {.resident = ALL};
static _Atomic int mover; /* the process that the thread belongs to */
static _Atomic bool is_over, works, is_untold;
static uint64_t spent;

static uint64_t ordered(uint32_t *number) {
    os_lock(&last.lock);
    const uint64_t resident = last.resident;
    *number = last.number;
    os_unlock(&last.lock);
    return resident;
}

void mover_hint(const struct wire *hint) {
    if (hint->what != WIRE_PLACE) return;
    os_lock(&last.lock);
    last.resident = hint->place.resident;
    last.number = hint->place.order;
    os_unlock(&last.lock);
    presence_news();
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static struct {
    struct amounts amounts;
    uint32_t order, waits;
    uint64_t at;
} said;

static bool say(uint32_t order) {
    const struct amounts now = regions_amounts();
    struct wire packet = {.what = WIRE_PLACED};
    packet.place.resident = now.resident;
    packet.place.moved = now.moved;
    packet.place.spent = spent;
    packet.place.order = order;
    packet.place.waits = presence_waiting();
    atomic_store(&is_untold, false);
    if (!session_say(&packet)) return atomic_store(&is_untold, true), false;
    said.amounts = now;
    said.order = order;
    said.waits = packet.place.waits;
    said.at = os_now();
    return true;
}

static uint64_t distance(uint64_t one, uint64_t other) { return one > other ? one - other : other - one; }

static bool is_news(uint32_t order) {
    const struct amounts now = regions_amounts();
    const uint64_t more = distance(now.resident, said.amounts.resident);
    return atomic_load(&is_untold) || order != said.order || now.moved != said.amounts.moved ||
           (presence_waiting() != 0) != (said.waits != 0) || more >= PIECE_BYTES ||
           (more && os_now() >= said.at + SELDOM_NS);
}

/* ---- carrying out an order --------------------------------------------------------------------------------------- */

static bool is_settled; /* all work is done since the barrier was shut */

static void open_door(void) {
    is_settled = false;
    if (presence_is_shut()) presence_open();
}

/* A graph that is being captured refers to addresses of memory that is about to leave, and has work that cannot be
 * waited for. */
static bool settle(void) {
    presence_shut();
    if (!presence_is_empty(os_now() + AGAIN_NS)) return false;
    if (!atomic_load(&captures)) return regions_settle() == CUDA_SUCCESS;
    presence_open();
    return false;
}

/* Whether something was moved. */
static bool step(uint64_t resident) {
    const struct amounts before = regions_amounts();
    const uint64_t began = os_now();
    if (before.resident > resident)
        regions_take_out(resident);
    else
        regions_put_back(resident);
    spent += os_now() - began;
    return regions_amounts().moved != before.moved;
}

/* Whether there is nothing to do until something happens. */
static bool follow(uint32_t *order) {
    for (;;) {
        const uint64_t resident = ordered(order);
        const struct amounts now = regions_amounts();
        if (now.resident <= resident && !now.moved) return open_door(), true;
        if (now.resident == resident) return true;
        is_settled = is_settled || settle();
        if (!is_settled) return false;
        if (!step(resident)) return now.resident < resident && resident - now.resident < PIECE_BYTES;
        if (os_now() - said.at >= TELL_NS) say(*order);
    }
}

static void follow_orders(void *unused) {
    (void)unused;
    presence_exempt();
    unnoticed_begin();
    uint32_t order = 0;
    while (!atomic_load(&is_over)) {
        const uint32_t seen = presence_news_seen();
        atomic_store(&works, true);
        const bool rests = atomic_load(&is_over) || follow(&order);
        atomic_store(&works, false);
        const bool is_told = !is_news(order) || say(order);
        presence_await_news(seen, os_now() + (rests && is_told ? SELDOM_NS : AGAIN_NS));
    }
}

/* ---- session callbacks ------------------------------------------------------------------------------------------- */

/* On a new connection everything is reported again. Without the thread nothing moves, and the broker learns of no
 * movable memory. */
bool mover_confirm(uint64_t unused) {
    (void)unused;
    const int pid = os_pid();
    int before = atomic_load(&mover);
    if (!moving_is_on()) return true;
    atomic_store(&is_untold, true);
    if (before != pid && atomic_compare_exchange_strong(&mover, &before, pid) && !os_thread(follow_orders, NULL))
        atomic_store(&mover, 0);
    presence_news();
    return true;
}

/* What the program calls from here on finds the barrier open: memory that is on the host is lost with the process. */
void mover_exiting(void) {
    const uint64_t deadline = os_now() + EXIT_WAIT;
    if (!moving_is_on()) return;
    atomic_store(&is_over, true);
    presence_news();
    while (atomic_load(&works) && os_now() < deadline) os_sleep(AGAIN_NS);
    if (presence_is_shut()) presence_open();
}

void mover_forget(void) {
    last.lock = (struct os_lock){0};
    last.resident = ALL;
    atomic_store(&mover, 0);
    atomic_store(&works, false);
    spent = 0;
    is_settled = false;
}
