#include "credit.h"

uint64_t account_used(unsigned card) { return card < MOST_CARDS ? credit_used(&accounts[card]) : 0; }

uint64_t account_credit(unsigned card) {
    const int64_t credit = card < MOST_CARDS ? atomic_load(&accounts[card].credit) : 0;
    return credit > 0 ? (uint64_t)credit : 0;
}

void account_tell(unsigned card, uint32_t flags) {
    KEEP_ERRNO;
    if (card >= MOST_CARDS) return;
    struct wire packet = credit_told(WIRE_AMOUNTS, card);
    packet.flags = flags;
    session_tell(&packet);
}

/* The credit goes back first, so a thread that waits for calls in flight sees it before they are gone. */
void account_end(unsigned card, uint64_t unused) {
    if (unused) credit_change(&accounts[card], (int64_t)unused);
    atomic_fetch_sub(&accounts[card].taking, 1);
    atomic_fetch_sub(&accounts[card].in_flight, 1);
    credit_pay_back_excess(card);
}

void account_begin_free(unsigned card) {
    if (card < MOST_CARDS) atomic_fetch_add(&accounts[card].in_flight, 1);
}

void account_end_free(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS) return;
    if (bytes) credit_change(&accounts[card], (int64_t)bytes);
    atomic_fetch_sub(&accounts[card].in_flight, 1);
    credit_pay_back_excess(card);
}

/* If the turn is not obtained in time, the bytes stay charged as used by the process: an overestimate, never an
 * underestimate. */
void account_end_free_later(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS) return;
    struct account *account = &accounts[card];
    if (bytes && session_enter(os_now() + SESSION_WAIT)) {
        atomic_fetch_sub(&account->lent, bytes);
        atomic_fetch_add(&account->changes, 1);
        credit_say_returned(card, 0);
        credit_leave();
    }
    atomic_fetch_sub(&account->in_flight, 1);
}

void account_hide(unsigned card, uint64_t more, uint64_t less) {
    if (card >= MOST_CARDS || more == less) return;
    atomic_fetch_add(&accounts[card].hidden, more - less);
    atomic_fetch_add(&accounts[card].changes, 1);
    account_tell(card, 0);
}

void account_correct(unsigned card, uint64_t more, uint64_t less) {
    if (card >= MOST_CARDS || more == less) return;
    credit_change(&accounts[card], (int64_t)(less - more));
}

/* ---- shared memory ---------------------------------------------------------------------------------------------- */

bool account_enter(void) { return session_enter(os_now() + SESSION_WAIT); }

bool account_ask_in_turn(struct wire *packet) { return session_ask(packet, session_patience(os_now() + SESSION_WAIT)); }

void account_leave_turn(void) { credit_leave(); }

bool account_ask(struct wire *packet) {
    KEEP_ERRNO;
    if (!account_enter()) return false;
    credit_wait_begins();
    const bool answered = account_ask_in_turn(packet);
    credit_wait_ends();
    credit_leave();
    return answered;
}

/* `lent` is reduced before `used`, so that memory held by others cannot be spent in between. Without a response the
 * bytes stay charged to the process: an overestimate, never an underestimate. */
void account_let_go(unsigned card, uint64_t number, uint64_t size, uint64_t less) {
    KEEP_ERRNO;
    struct wire packet = {.what = WIRE_LEAVE, .card = (uint16_t)card};
    packet.shared.number = number;
    packet.shared.size = size;
    packet.shared.freed = less;
    if (card >= MOST_CARDS || !account_enter()) return;
    if (account_ask_in_turn(&packet) && packet.result == WIRE_OK) {
        credit_now_lent(&accounts[card], packet.amounts.lent);
        credit_change(&accounts[card], (int64_t)less);
    }
    credit_leave();
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

void account_keep(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS) return;
    atomic_store(&accounts[card].kept, bytes);
    if (!bytes) credit_pay_back_excess(card);
}

void accounts_forget(void) { credit_forget(); }
