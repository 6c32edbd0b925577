/* Requests for room, each repeated until the refusal is final, and what the broker asks of this process. Before a call
 * is refused, pools and graphs return what they keep unused. */
#include "../presence/presence.h"
#include "credit.h"
#include "reserves.h"

enum { TRIES = 16, PATIENCE = 40, MOST_WAITS = 6 };

#define PAUSE_NS (250 * 1000ull)
#define FIRST_WAIT_NS (2ull * OS_MS)
#define CODE_BYTES (2ull << 20)
#define NO_CALL_TAKES (1ull << 56) /* more than any card has: amounts below never overflow */

/* The state of one call's requests. */
struct need {
    uint64_t bytes, deadline;
    bool is_again;
    bool has_grown; /* by memory that is not accounted: the broker measures the card first */
    bool is_sure; /* of the response, if it was a refusal */
};

/* The caller holds the turn. False: no response. *is_old: the response predates what was returned meanwhile. */
static bool ask_waiting(struct wire *packet, const struct need *need, bool *is_old) {
    const unsigned card = packet->card;
    packet->flags = (uint16_t)((need->is_again ? WIRE_AGAIN : 0) | (need->has_grown ? WIRE_GREW : 0));
    credit_wait_begins();
    const bool answered = session_ask(packet, need->deadline);
    *is_old = credit_wait_ends() && packet->amounts.returns != atomic_load(&accounts[card].returns);
    return answered;
}

static void now_granted(struct account *account, uint64_t credit) {
    atomic_store(&account->granted, credit);
    if (credit) atomic_store(&account->is_dry, false);
}

/* Never returned to programs: the request is to be repeated once this process's memory is back on the card. */
enum { NOT_IN_PLACE = CUDA_ERROR_NOT_READY };

static CUresult refused_by(enum wire_result result) {
    return result == WIRE_OUT ? (CUresult)NOT_IN_PLACE : CUDA_ERROR_NOT_INITIALIZED;
}

/* CUDA_SUCCESS: check again whether there is enough credit. */
static CUresult lend(unsigned card, struct need *need) {
    struct account *account = &accounts[card];
    struct wire packet = credit_told(WIRE_LEND, card);
    const uint64_t wanted = packet.amounts.used + need->bytes;
    bool is_old;
    packet.amounts.lent = wanted;
    if (!ask_waiting(&packet, need, &is_old)) return CUDA_ERROR_NOT_INITIALIZED;
    if (packet.result == WIRE_UNKNOWN) return CUDA_ERROR_OUT_OF_MEMORY;
    if (packet.result > WIRE_NO) return refused_by(packet.result);
    if (is_old) return CUDA_SUCCESS;
    credit_now_lent(account, packet.amounts.lent);
    need->is_sure = packet.flags & WIRE_SURE;
    if (packet.result == WIRE_NO) return CUDA_ERROR_OUT_OF_MEMORY;
    if (packet.amounts.lent < wanted) return CUDA_ERROR_NOT_INITIALIZED; /* invalid response */
    now_granted(account, packet.amounts.lent - wanted);
    return CUDA_SUCCESS;
}

/* Other threads may spend the borrowed credit first; then more is borrowed, for the last time once the deadline has
 * passed. */
static CUresult borrow_in_turn(unsigned card, struct need *need) {
    CUresult result = CUDA_SUCCESS;
    need->deadline = session_patience(need->deadline);
    bool spent = credit_spend(&accounts[card], need->bytes), is_last = false;
    while (!spent && !is_last && result == CUDA_SUCCESS) {
        is_last = os_now() >= need->deadline;
        result = lend(card, need);
        spent = credit_spend(&accounts[card], need->bytes); /* even if refused: others may have freed memory
                                                             * meanwhile */
    }
    if (spent) return CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_INITIALIZED : result;
}

static CUresult borrow(unsigned card, struct need *need) {
    if (!session_enter(need->deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = borrow_in_turn(card, need);
    credit_leave();
    return result;
}

/* Waits for other calls, which reserve more than they will take, to give the rest back. False: none will. */
static bool others_gave_back(struct account *account, uint32_t changes) {
    for (int n = 0; n < PATIENCE; n++) {
        if (atomic_load(&account->changes) != changes) return true;
        if (!atomic_load(&account->taking)) return false;
        os_sleep(PAUSE_NS);
    }
    return false;
}

/* A broker that is not sure has recalled unused memory from others, or requested a measurement of the card, and
 * responded without waiting for the result: ask it again a little later. */
static bool ask_again(const struct need *need, unsigned *waited) {
    if (need->is_sure || *waited == MOST_WAITS) return false;
    os_sleep(FIRST_WAIT_NS << (*waited)++);
    return true;
}

/* Repeats the request until the refusal is final: nothing unused is left, no call is about to give back, and the broker
 * is sure. */
static CUresult insist(unsigned card, uint64_t bytes, CUresult (*ask)(unsigned, struct need *)) {
    KEEP_ERRNO;
    uint64_t deadline = os_now() + SESSION_WAIT;
    unsigned waited = 0;
    for (int tries = 0;; tries++) {
        struct need need = {.bytes = bytes, .deadline = deadline, .is_again = tries > 0};
        const uint32_t changes = atomic_load(&accounts[card].changes);
        const CUresult result = ask(card, &need);
        if (result == (CUresult)NOT_IN_PLACE) {
            presence_await();
            deadline = os_now() + SESSION_WAIT;
            tries--;
            continue;
        }
        if (result != CUDA_ERROR_OUT_OF_MEMORY || tries == TRIES || os_now() > deadline) return result;
        if (reserves_shrink(card) || others_gave_back(&accounts[card], changes)) continue;
        if (!ask_again(&need, &waited)) return result;
    }
}

CUresult account_begin(unsigned card, uint64_t bytes) {
    if (card >= MOST_CARDS || bytes > NO_CALL_TAKES) return CUDA_ERROR_OUT_OF_MEMORY;
    return credit_spend(&accounts[card], bytes) ? CUDA_SUCCESS : insist(card, bytes, borrow);
}

CUresult account_exceed(unsigned card) {
    const CUresult result = account_begin(card, 0);
    if (result == CUDA_SUCCESS) account_end(card, 0);
    return result;
}

/* The broker knows how much a context takes. */
static CUresult ask_context(unsigned card, struct need *need) {
    bool is_old;
    if (!session_enter(need->deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    need->deadline = session_patience(need->deadline);
    if (credit_take(&accounts[card], 0)) credit_say_returned(card, 0); /* our own credit may be the room needed */
    struct wire packet = credit_told(WIRE_CONTEXT, card);
    const bool answered = ask_waiting(&packet, need, &is_old);
    need->is_sure = packet.flags & WIRE_SURE;
    credit_leave();
    if (!answered || packet.result == WIRE_WRONG) return CUDA_ERROR_NOT_INITIALIZED;
    if (packet.result == WIRE_OUT) return (CUresult)NOT_IN_PLACE;
    return packet.result == WIRE_OK ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult account_context(unsigned card) {
    return card < MOST_CARDS ? insist(card, 0, ask_context) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Unused credit is returned first, so that it is lent again only if there is room. */
static CUresult ask_code(unsigned card, struct need *need) {
    if (!session_enter(need->deadline)) return CUDA_ERROR_NOT_INITIALIZED;
    need->has_grown = true;
    if (credit_take(&accounts[card], 0)) credit_say_returned(card, 0);
    const CUresult result = borrow_in_turn(card, need);
    credit_leave();
    return result;
}

CUresult account_code(unsigned card) {
    if (card >= MOST_CARDS) return CUDA_SUCCESS;
    const CUresult result = insist(card, CODE_BYTES, ask_code);
    if (result == CUDA_SUCCESS) account_end(card, CODE_BYTES);
    return result;
}

/* ---- notifications and new connections -------------------------------------------------------------------------- */

/* Return first what is unused now: another process waits for it. */
static void recalled(unsigned card, uint32_t number) {
    atomic_store(&accounts[card].recalled, number);
    credit_pay_back(card);
    reserves_reread(card);
    if (account_credit(card)) credit_pay_back(card);
}

static void report(unsigned card, uint32_t number) {
    reserves_reread(card);
    struct wire packet = credit_told(WIRE_AMOUNTS, card);
    packet.number = number;
    session_tell(&packet);
}

void accounts_hint(const struct wire *hint) {
    if (hint->what == WIRE_RECALL) recalled(hint->card, hint->number);
    if (hint->what == WIRE_REPORT) report(hint->card, hint->number);
}

static bool confirm_all(uint64_t deadline) {
    for (unsigned card = 0; card < session_cards(); card++) {
        struct account *account = &accounts[card];
        struct wire packet = credit_told(WIRE_LEND, card);
        if (!packet.amounts.lent && !packet.amounts.used) continue;
        packet.amounts.lent = packet.amounts.used;
        if (!session_ask_once(&packet, deadline)) return false;
        if (packet.result > WIRE_NO && packet.result != WIRE_UNKNOWN) return false;
        credit_now_lent(account, packet.result == WIRE_UNKNOWN ? 0 : packet.amounts.lent);
        atomic_store(&account->granted, 0);
    }
    return true;
}

/* Runs on a new connection, possibly in the middle of another request. */
bool accounts_confirm(uint64_t deadline) {
    const bool was_waiting = credit_wait_pauses();
    const bool done = confirm_all(deadline);
    if (was_waiting) credit_wait_goes_on();
    return done;
}
