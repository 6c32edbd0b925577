/* The turn, which permits sending a request: a lock with a timeout, which is extended while the broker responds. */
#include "session.h"

#include <stdatomic.h>

enum { FREE, TAKEN, WAITED_FOR };

static _Atomic uint32_t turn;
_Atomic uint64_t session_heard;

uint64_t session_patience(uint64_t deadline) {
    const uint64_t last = atomic_load(&session_heard);
    const uint64_t until = last ? last + SESSION_WAIT : 0;
    return until > deadline ? until : deadline;
}

bool session_enter(uint64_t deadline) {
    uint32_t seen = FREE;
    bool has_had_grace = false;
    if (atomic_compare_exchange_strong(&turn, &seen, TAKEN)) return true;
    while (atomic_exchange(&turn, WAITED_FOR) != FREE) {
        uint64_t until = session_patience(deadline);
        if (os_now() >= until) {
            if (has_had_grace) return false; /* the mark stays and causes one spurious wake-up */
            has_had_grace = true;
            until = os_now() + SESSION_GRACE;
        }
        os_wait(&turn, WAITED_FOR, until);
    }
    return true;
}

bool session_try(void) {
    uint32_t seen = FREE;
    return atomic_compare_exchange_strong(&turn, &seen, TAKEN);
}

void session_leave(void) {
    if (atomic_exchange(&turn, FREE) == WAITED_FOR) os_wake(&turn, 1);
}

void turns_forget(void) {
    atomic_store(&turn, FREE);
    atomic_store(&session_heard, 0);
}
