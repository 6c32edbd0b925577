#include "claims.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static struct claims *claims;
static unsigned slot;

void claims_open(const char *path, unsigned my_slot) {
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) stop_with("%s: %s", path, strerror(errno));
    claims = mmap(NULL, sizeof *claims, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (claims == MAP_FAILED || my_slot >= CLAIM_SLOTS) stop_with("%s: cannot be mapped", path);
    slot = my_slot;
}

struct offer *claims_offer(unsigned number) { return &claims->offers[number % CLAIM_MAILBOX]; }

static u64 now(void) { return atomic_load(&claims->total) - *(volatile u64 *)&claims->removed; }

void claim_more(u64 bytes) {
    atomic_fetch_add(&claims->total, bytes);
    atomic_fetch_add(&claims->mine[slot], bytes);
    const u64 change = atomic_fetch_add(&claims->changes, 1);
    atomic_store(&claims->history[change % CLAIM_HISTORY], now());
}

void claim_less(u64 bytes) {
    atomic_fetch_sub(&claims->mine[slot], bytes);
    atomic_fetch_sub(&claims->total, bytes);
}

struct asking asking_begins(void) {
    const u64 since = atomic_load(&claims->changes);
    return (struct asking){.since = since, .highest = now(), .excused = atomic_load(&claims->excused)};
}

static u64 larger(u64 a, u64 b) { return a > b ? a : b; }

int64_t asking_room(const struct asking *asking) {
    const u64 until = atomic_load(&claims->changes);
    u64 highest = larger(asking->highest, now());
    if (until - asking->since >= CLAIM_HISTORY) return -1; /* too long ago to be judged */
    for (u64 change = asking->since; change < until; change++)
        highest = larger(highest, atomic_load(&claims->history[change % CLAIM_HISTORY]));
    highest += larger(asking->excused, atomic_load(&claims->excused));
    return highest > claims->limit ? -1 : (int64_t)(claims->limit - highest);
}
