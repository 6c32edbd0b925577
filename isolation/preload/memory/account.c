#include "account.h"

#include <stdatomic.h>

enum { TRIES = 16, PATIENCE = 40, MOST_WAITS = 6 };

#define PAUSE_NS (250 * 1000ull)
#define SURE_NS (3ull * OS_MS) /* a question that waits for others is answered after 5 ms */
#define FIRST_WAIT_NS (2ull * OS_MS)
#define SOON_NS (2ull * OS_MS) /* a question is answered by then, or waits for more than this */
#define CODE_BYTES (2ull << 20)
#define NO_CALL_TAKES (1ull << 56) /* more than any card has: amounts below never overflow */

static struct account {
    _Atomic uint64_t lent;
    _Atomic int64_t credit;      /* less than 0: more is held than is lent */
    _Atomic uint64_t kept, granted; /* what may stay as credit */
    _Atomic uint32_t changes, in_flight;
    _Atomic uint32_t taking; /* of in_flight: those that have reserved */
} accounts[MOST_CARDS];

static _Atomic uint64_t recalls; /* one bit a card */

/* ---- without the broker ----------------------------------------------------------------------------------------- */

static void change_credit(struct account *account, int64_t by) {
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

/* In flight first, so that the change is never seen without the call. */
static bool spend_in_flight(struct account *account, uint64_t bytes) {
    atomic_fetch_add(&account->in_flight, 1);
    atomic_fetch_add(&account->taking, 1);
    if (spend(account, bytes)) return true;
    atomic_fetch_sub(&account->taking, 1);
    atomic_fetch_sub(&account->in_flight, 1);
    return false;
}

static uint64_t used_of(struct account *account) {
    const int64_t used = (int64_t)atomic_load(&account->lent) - atomic_load(&account->credit);
    return used > 0 ? (uint64_t)used : 0;
}

uint64_t account_used(unsigned card) { return card < MOST_CARDS ? used_of(&accounts[card]) : 0; }

uint64_t account_credit(unsigned card) {
    const int64_t credit = card < MOST_CARDS ? atomic_load(&accounts[card].credit) : 0;
    return credit > 0 ? (uint64_t)credit : 0;
}

/* ---- what the broker is told; in turn --------------------------------------------------------------------------- */

/* Says the same if nothing changed meanwhile, whatever the order in which a thread's changes become visible. */
static struct wire amounts_of(enum wire_what what, unsigned card) {
    struct account *account = &accounts[card];
    struct wire packet = {.what = (uint16_t)what, .card = (uint16_t)card};
    uint32_t changes;
    do {
        changes = atomic_load(&account->changes);
        packet.amounts.used = used_of(account);
        packet.amounts.lent = atomic_load(&account->lent);
        packet.amounts.in_flight = atomic_load(&account->in_flight);
    } while (changes != atomic_load(&account->changes));
    packet.amounts.changes = changes;
    return packet;
}

static void now_lent(struct account *account, uint64_t lent) {
    const uint64_t before = atomic_exchange(&account->lent, lent);
    atomic_fetch_add(&account->credit, (int64_t)(lent - before));
}

/* Credit goes first: what is being returned can not be spent. */
static bool take_excess(struct account *account, uint64_t keep) {
    int64_t credit = atomic_load(&account->credit);
    do {
        if (credit <= (int64_t)keep) return false;
    } while (!atomic_compare_exchange_weak(&account->credit, &credit, (int64_t)keep));
    atomic_fetch_sub(&account->lent, (uint64_t)credit - keep);
    return true;
}

/* Unheard, the next connection finds out what is lent. */
static void say_returned(unsigned card) {
    KEEP_ERRNO;
    struct wire packet = amounts_of(WIRE_RETURN, card);
    session_tell(&packet);
}

static uint64_t may_stay(struct account *account) {
    const uint64_t granted = atomic_load(&account->granted), kept = atomic_load(&account->kept);
    return granted > kept ? granted : kept;
}

static void pay_back_recalled(void) {
    uint64_t which = atomic_exchange(&recalls, 0);
    for (unsigned card = 0; which; card++, which >>= 1) {
        if (!(which & 1)) continue;
        atomic_store(&accounts[card].granted, 0);
        take_excess(&accounts[card], 0);
        say_returned(card); /* the broker waits for it, also if it is nothing */
    }
}

static void leave(void) {
    pay_back_recalled();
    session_leave();
}

/* A thread that has the turn now either borrows, and then needs the credit, or is about to see the recall. */
static void pay_back_excess(unsigned card) {
    struct account *account = &accounts[card];
    if (atomic_load(&account->credit) <= (int64_t)may_stay(account) || !session_enter(0)) return;
    if (take_excess(account, may_stay(account))) say_returned(card);
    leave();
}

static void recall(unsigned card) {
    atomic_fetch_or(&recalls, 1ull << card);
    if (session_enter(os_now() + SOON_NS)) leave();
}

/* First what is there at once: another process waits for it. */
static void recalled(unsigned card) {
    recall(card);
    memory_reread(card);
    if (account_credit(card)) recall(card);
}

static void report(unsigned card, uint32_t number) {
    memory_reread(card);
    struct wire packet = amounts_of(WIRE_AMOUNTS, card);
    packet.number = number;
    session_tell(&packet);
}

void accounts_hint(const struct wire *hint) {
    if (hint->what == WIRE_RECALL) recalled(hint->card);
    if (hint->what == WIRE_REPORT) report(hint->card, hint->number);
}

void account_tell(unsigned card, uint32_t flags) {
    KEEP_ERRNO;
    if (card >= MOST_CARDS) return;
    struct wire packet = amounts_of(WIRE_AMOUNTS, card);
    packet.flags = flags;
    session_tell(&packet);
}

bool accounts_confirm(uint64_t deadline) {
    for (unsigned card = 0; card < session_cards(); card++) {
        struct account *account = &accounts[card];
        struct wire packet = amounts_of(WIRE_LEND, card);
        if (!packet.amounts.lent && !packet.amounts.used) continue;
        packet.amounts.lent = packet.amounts.used;
        if (!session_ask_once(&packet, deadline)) return false;
        if (packet.result > WIRE_NO && packet.result != WIRE_UNKNOWN) return false;
        now_lent(account, packet.result == WIRE_UNKNOWN ? 0 : packet.amounts.lent);
        atomic_store(&account->granted, 0);
    }
    return true;
}

/* ---- asking ----------------------------------------------------------------------------------------------------- */

static CUresult lend(unsigned card, uint64_t bytes, uint32_t flags, uint64_t deadline) {
    struct account *account = &accounts[card];
    struct wire packet = amounts_of(WIRE_LEND, card);
    const uint64_t wanted = packet.amounts.used + bytes;
    packet.amounts.lent = wanted;
    packet.flags = flags;
    if (!session_ask(&packet, deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    if (packet.result == WIRE_UNKNOWN) return CUDA_ERROR_OUT_OF_MEMORY;
    if (packet.result > WIRE_NO) return CUDA_ERROR_NOT_INITIALIZED;
    now_lent(account, packet.amounts.lent);
    if (packet.result == WIRE_NO) return CUDA_ERROR_OUT_OF_MEMORY;
    if (packet.amounts.lent < wanted) return CUDA_ERROR_NOT_INITIALIZED; /* it makes no sense */
    atomic_store(&account->granted, packet.amounts.lent - wanted);
    return CUDA_SUCCESS;
}

/* Other threads may spend what was borrowed before we do; then it is borrowed again, the last time when the time is
 * over. */
static CUresult borrow(unsigned card, uint64_t bytes, uint32_t flags, uint64_t deadline) {
    CUresult result = CUDA_SUCCESS;
    if (!session_enter(deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    deadline = session_patience(deadline);
    bool spent = spend_in_flight(&accounts[card], bytes), is_last = false;
    while (!spent && !is_last && result == CUDA_SUCCESS) {
        is_last = os_now() >= deadline;
        result = lend(card, bytes, flags, deadline);
        spent = spend_in_flight(&accounts[card], bytes); /* refused, too: others may have freed meanwhile */
    }
    leave();
    if (spent) return CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_INITIALIZED : result;
}

/* Other calls reserve more than they will take, and may be about to give it back. False: none does. */
static bool others_gave_back(struct account *account, uint32_t changes) {
    for (int n = 0; n < PATIENCE; n++) {
        if (atomic_load(&account->changes) != changes) return true;
        if (!atomic_load(&account->taking)) return false;
        os_sleep(PAUSE_NS);
    }
    return false;
}

/* A broker that refuses at once is sure. One that took its time had sent for what others hold unused, or for a look at
 * the card, and answered before it came: it is asked again a little later. */
static bool ask_again(int tries, uint64_t took, unsigned *waited) {
    if (took < SURE_NS) return tries == 0;
    if (*waited == MOST_WAITS) return false;
    os_sleep(FIRST_WAIT_NS << (*waited)++);
    return true;
}

/* A refusal counts when nothing unused is left, no call is about to give back, and the broker is sure. */
static CUresult insist(unsigned card, uint64_t bytes, CUresult (*ask)(unsigned, uint64_t, uint32_t, uint64_t)) {
    KEEP_ERRNO;
    const uint64_t deadline = os_now() + SESSION_WAIT;
    unsigned waited = 0;
    for (int tries = 0;; tries++) {
        const uint32_t changes = atomic_load(&accounts[card].changes);
        const uint64_t began = os_now();
        const CUresult result = ask(card, bytes, tries ? WIRE_AGAIN : 0, deadline);
        const uint64_t took = os_now() - began;
        if (result != CUDA_ERROR_OUT_OF_MEMORY || tries == TRIES) return result;
        if (memory_shrink(card) || others_gave_back(&accounts[card], changes)) continue;
        if (!ask_again(tries, took, &waited)) return result;
    }
}

CUresult account_begin(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS || bytes > NO_CALL_TAKES) return CUDA_ERROR_OUT_OF_MEMORY;
    return spend_in_flight(&accounts[card], bytes) ? CUDA_SUCCESS : insist(card, bytes, borrow);
}

CUresult account_exceed(unsigned card, uint64_t more) {
    const CUresult result = account_begin(card, more);
    if (result == CUDA_SUCCESS) account_end(card, 0);
    return result;
}

/* Who waits for others sees what was given back before they are gone. */
void account_end(unsigned card, uint64_t unused) {
    if (unused) change_credit(&accounts[card], (int64_t)unused);
    atomic_fetch_sub(&accounts[card].taking, 1);
    atomic_fetch_sub(&accounts[card].in_flight, 1);
    pay_back_excess(card);
}

void account_begin_free(unsigned card) {
    if (card < MOST_CARDS) atomic_fetch_add(&accounts[card].in_flight, 1);
}

void account_end_free(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS) return;
    if (bytes) change_credit(&accounts[card], (int64_t)bytes);
    atomic_fetch_sub(&accounts[card].in_flight, 1);
    pay_back_excess(card);
}

/* Without the turn in time they stay charged to the process as what it uses: more than true, never less. */
void account_end_free_later(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS) return;
    struct account *account = &accounts[card];
    if (bytes && session_enter(os_now() + SESSION_WAIT)) {
        atomic_fetch_sub(&account->lent, bytes);
        atomic_fetch_add(&account->changes, 1);
        say_returned(card);
        leave();
    }
    atomic_fetch_sub(&account->in_flight, 1);
}

void account_correct(unsigned card, uint64_t more, uint64_t less) {
    if (card >= MOST_CARDS || more == less) return;
    change_credit(&accounts[card], (int64_t)(less - more));
}

/* ---- what several processes hold -------------------------------------------------------------------------------- */

bool account_enter(void) { return session_enter(os_now() + SESSION_WAIT); }

bool account_ask_in_turn(struct wire *packet) { return session_ask(packet, session_patience(os_now() + SESSION_WAIT)); }

void account_leave_turn(void) { leave(); }

bool account_ask(struct wire *packet) {
    KEEP_ERRNO;
    if (!account_enter()) return false;
    const bool answered = account_ask_in_turn(packet);
    leave();
    return answered;
}

/* What is lent becomes less before what is used does: what others hold can not be spent in between. Without an answer
 * it stays charged to the process: more than true, never less. */
void account_let_go(unsigned card, uint64_t number, uint64_t size, uint64_t less) {
    KEEP_ERRNO;
    struct wire packet = {.what = WIRE_LEAVE, .card = (uint16_t)card};
    packet.shared.number = number;
    packet.shared.size = size;
    packet.shared.freed = less;
    if (card >= MOST_CARDS || !account_enter()) return;
    if (account_ask_in_turn(&packet) && packet.result == WIRE_OK) {
        now_lent(&accounts[card], packet.amounts.lent);
        change_credit(&accounts[card], (int64_t)less);
    }
    leave();
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

void account_keep(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS) return;
    atomic_store(&accounts[card].kept, bytes);
    if (!bytes) pay_back_excess(card);
}

/* How much it will be the broker knows. */
static CUresult ask_context(unsigned card, uint64_t unknown, uint32_t flags, uint64_t deadline) {
    (void)unknown;
    if (!session_enter(deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    if (flags & WIRE_AGAIN && take_excess(&accounts[card], 0)) say_returned(card); /* our own credit may be the room */
    struct wire packet = amounts_of(WIRE_CONTEXT, card);
    packet.flags = flags;
    const bool answered = session_ask(&packet, session_patience(deadline));
    leave();
    if (!answered || packet.result == WIRE_WRONG) return CUDA_ERROR_NOT_INITIALIZED;
    return packet.result == WIRE_OK ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult account_context(unsigned card) {
    return card < MOST_CARDS ? insist(card, 0, ask_context) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is lent and not used goes back first, so that it is lent again only where there is room. */
static CUresult ask_code(unsigned card, uint64_t bytes, uint32_t flags, uint64_t deadline) {
    if (!session_enter(deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    if (take_excess(&accounts[card], 0)) say_returned(card);
    const CUresult result = lend(card, bytes, flags | WIRE_GREW, session_patience(deadline));
    leave();
    return result;
}

CUresult account_code(unsigned card) { return card < MOST_CARDS ? insist(card, CODE_BYTES, ask_code) : CUDA_SUCCESS; }

void accounts_forget(void) {
    for (unsigned card = 0; card < MOST_CARDS; card++) accounts[card] = (struct account){0};
    atomic_store(&recalls, 0);
}
