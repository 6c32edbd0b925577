/* What a process may take without asking, how it is spent, and how it is returned to the broker. */
#include "credit.h"

#include <stdatomic.h>
#include <string.h>

HIDDEN struct account accounts[MOST_CARDS];

static _Atomic uint64_t owed; /* bitmap of cards whose unused memory is to be returned */

/* Whether the thread that holds the turn waits for a response: other threads then return memory in its place. */
static struct {
    struct os_lock lock;
    bool is_waiting, has_returned;
} asking;

/* ---- without the broker ----------------------------------------------------------------------------------------- */

void credit_change(struct account *account, int64_t by) {
    atomic_fetch_add(&account->credit, by);
    atomic_fetch_add(&account->changes, 1);
}

static bool spend(struct account *account, uint64_t bytes) {
    int64_t credit = atomic_load(&account->credit);
    do {
        if (credit < (int64_t)bytes) return false;
    } while (!atomic_compare_exchange_weak(&account->credit, &credit, credit - (int64_t)bytes));
    atomic_fetch_add(&account->changes, 1);
    return true;
}

/* The in-flight count rises first, so that the change is never seen without the call. */
bool credit_spend(struct account *account, uint64_t bytes) {
    atomic_fetch_add(&account->in_flight, 1);
    atomic_fetch_add(&account->taking, 1);
    if (spend(account, bytes)) return true;
    atomic_fetch_sub(&account->taking, 1);
    atomic_fetch_sub(&account->in_flight, 1);
    return false;
}

uint64_t credit_used(struct account *account) {
    const int64_t used = (int64_t)atomic_load(&account->lent) - atomic_load(&account->credit);
    return used > 0 ? (uint64_t)used : 0;
}

/* ---- reports to the broker; the caller holds the turn ----------------------------------------------------------- */

/* Rereads until nothing changed meanwhile, so that the amounts are consistent in whatever order a thread's changes
 * become visible. */
struct wire credit_told(enum wire_what what, unsigned card) {
    struct account *account = &accounts[card];
    struct wire packet = {.what = (uint16_t)what, .card = (uint16_t)card};
    uint32_t changes;
    do {
        changes = atomic_load(&account->changes);
        packet.amounts.used = credit_used(account);
        packet.amounts.lent = atomic_load(&account->lent);
        packet.amounts.in_flight = atomic_load(&account->in_flight);
        packet.amounts.returns = atomic_load(&account->returns);
        packet.amounts.hidden = atomic_load(&account->hidden);
    } while (changes != atomic_load(&account->changes));
    packet.amounts.changes = changes;
    return packet;
}

void credit_now_lent(struct account *account, uint64_t lent) {
    const uint64_t before = atomic_exchange(&account->lent, lent);
    atomic_fetch_add(&account->credit, (int64_t)(lent - before));
}

/* Credit is reduced first, so that what is being returned cannot be spent. */
bool credit_take(struct account *account, uint64_t keep) {
    int64_t credit = atomic_load(&account->credit);
    do {
        if (credit <= (int64_t)keep) return false;
    } while (!atomic_compare_exchange_weak(&account->credit, &credit, (int64_t)keep));
    atomic_fetch_sub(&account->lent, (uint64_t)credit - keep);
    return true;
}

/* If the packet is lost, the next connection settles how much is lent. */
void credit_say_returned(unsigned card, uint32_t number) {
    KEEP_ERRNO;
    atomic_fetch_add(&accounts[card].returns, 1);
    struct wire packet = credit_told(WIRE_RETURN, card);
    packet.number = number;
    session_tell(&packet);
}

static uint64_t may_stay(struct account *account) {
    const uint64_t granted = atomic_load(&account->granted), kept = atomic_load(&account->kept);
    if (atomic_load(&account->is_dry)) return 0;
    return granted > kept ? granted : kept;
}

static void pay_back_owed(void) {
    uint64_t which = atomic_exchange(&owed, 0);
    for (unsigned card = 0; which; card++, which >>= 1) {
        if (!(which & 1)) continue;
        const uint32_t number = atomic_load(&accounts[card].recalled);
        atomic_store(&accounts[card].is_dry, true);
        credit_take(&accounts[card], 0);
        credit_say_returned(card, number); /* the broker waits for this, even if nothing is returned */
    }
}

void credit_wait_begins(void) {
    os_lock(&asking.lock);
    pay_back_owed();
    asking.is_waiting = true;
    asking.has_returned = false;
    os_unlock(&asking.lock);
}

bool credit_wait_ends(void) {
    os_lock(&asking.lock);
    asking.is_waiting = false;
    const bool has_returned = asking.has_returned;
    os_unlock(&asking.lock);
    return has_returned;
}

static void pay_back_waiting(void) {
    os_lock(&asking.lock);
    if (asking.is_waiting) {
        pay_back_owed();
        asking.has_returned = true;
    }
    os_unlock(&asking.lock);
}

/* A card marked after the last check is handled by the thread that set the mark, or here. */
void credit_leave(void) {
    do {
        pay_back_owed();
        session_leave();
    } while (atomic_load(&owed) && session_try());
}

/* The thread that holds the turn sees the mark when it begins to wait, or leaves. */
static bool pay_back_in_turn(unsigned card) {
    atomic_fetch_or(&owed, 1ull << card);
    const bool is_mine = session_try();
    if (is_mine) credit_leave();
    return is_mine;
}

/* A thread that holds the turn either borrows, and then needs the credit, or is about to see the mark. */
void credit_pay_back_excess(unsigned card) {
    struct account *account = &accounts[card];
    if (atomic_load(&account->credit) <= (int64_t)may_stay(account)) return;
    if (!session_try()) {
        pay_back_in_turn(card);
        return;
    }
    if (credit_take(account, may_stay(account))) credit_say_returned(card, 0);
    credit_leave();
}

void credit_pay_back(unsigned card) {
    if (!pay_back_in_turn(card)) pay_back_waiting();
}

bool credit_wait_pauses(void) {
    os_lock(&asking.lock);
    const bool was_waiting = asking.is_waiting;
    asking.is_waiting = false;
    os_unlock(&asking.lock);
    return was_waiting;
}

void credit_wait_goes_on(void) {
    os_lock(&asking.lock);
    asking.is_waiting = true;
    os_unlock(&asking.lock);
}

void credit_forget(void) {
    memset(accounts, 0, sizeof accounts);
    memset(&asking, 0, sizeof asking);
    atomic_store(&owed, 0);
}
