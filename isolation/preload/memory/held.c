/* Records of memory that belongs to contexts: addresses of cuMemAlloc and related calls, arrays, and local memory. */
#include "shared.h"

#include <string.h>

/* The driver cuts small allocations from blocks of 2 MiB, which stay allocated while any part is in use. An address
 * owns the blocks that it fills completely and shares the first and the last. */
static struct table held[HELD_KINDS], blocks;
static _Atomic uint32_t clock;

#define EXPORTED (1ull << 63) /* flag in bytes: other processes can hold it */

uint32_t held_now(void) { return atomic_fetch_add(&clock, 1) + 1; }

static uint64_t bytes_of(const struct entry *what) { return what->bytes & ~(EXPORTED | HELD_HIDDEN); }

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

struct span {
    uint64_t whole;     /* bytes of completely filled blocks */
    uint64_t shared[2]; /* numbers of the first and last, if shared; 0: none */
};

static struct span span_of(uint64_t address, uint64_t bytes) {
    const uint64_t first = address / BLOCK_BYTES, end = address + bytes, last = (end - 1) / BLOCK_BYTES;
    const bool fills_first = address % BLOCK_BYTES == 0 && end >= (first + 1) * BLOCK_BYTES;
    const bool fills_last = last > first ? end % BLOCK_BYTES == 0 : fills_first;
    struct span span = {.whole = (last - first + 1) * BLOCK_BYTES};
    if (!fills_first) span.shared[0] = first;
    if (!fills_last && (last != first || fills_first)) span.shared[1] = last;
    for (int n = 0; n < 2; n++)
        if (span.shared[n]) span.whole -= BLOCK_BYTES;
    return span;
}

/* `by` 1: counts bytes that become held; -1: bytes that nothing else holds. */
static bool count_blocks(uint64_t address, uint64_t bytes, int by, uint64_t *changed) {
    const struct span span = span_of(address, bytes);
    struct entry now;
    *changed = span.whole;
    for (int n = 0; n < 2; n++) {
        if (!span.shared[n]) continue;
        if (!table_count(&blocks, span.shared[n], by, &now)) {
            if (n && span.shared[0]) table_count(&blocks, span.shared[0], -by, &now);
            return false;
        }
        if (now.key && now.times == (by > 0 ? 1 : 0)) *changed += BLOCK_BYTES;
    }
    return true;
}

static bool count(enum held_kind kind, const struct entry *what, int by, uint64_t *changed) {
    if (kind == HELD_MEMORY) return count_blocks(what->key, bytes_of(what), by, changed);
    *changed = bytes_of(what);
    return true;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* What other processes may hold of it: at most all blocks that it touches. */
static uint64_t shared_of(const struct entry *what) {
    const struct span span = span_of(what->key, bytes_of(what));
    return span.whole + ((span.shared[0] != 0) + (span.shared[1] != 0)) * BLOCK_BYTES;
}

/* Memory is no longer held: returns how much of it becomes credit. */
static uint64_t let_go(const struct entry *what, uint64_t less) {
    if (what->bytes & HELD_HIDDEN) account_hide(what->card, 0, less);
    if (!(what->bytes & EXPORTED)) return less;
    account_let_go(what->card, shared_number(SHARED_HELD, what->serial), shared_of(what), less);
    return 0;
}

static void gone(enum held_kind kind, const struct entry *what) {
    uint64_t less;
    count(kind, what, -1, &less);
    account_correct(what->card, 0, let_go(what, less));
}

bool held_note(enum held_kind kind, const struct entry *what, uint64_t *charged) {
    struct entry note = *what, before;
    note.times = 1;
    note.serial = held_now();
    if (!count(kind, &note, 1, charged)) return false;
    if (!table_put(&held[kind], &note, &before)) {
        count(kind, &note, -1, charged);
        return false;
    }
    if (before.times) gone(kind, &before);
    return true;
}

bool held_take(enum held_kind kind, uint64_t key, struct entry *what) {
    if (!key || !table_take(&held[kind], key, what)) return false;
    account_begin_free(what->card);
    return true;
}

/* Blocks are counted down only here: another thread may already have freed the rest of a block, in the driver too. */
void held_end(enum held_kind kind, const struct entry *what, bool freed, bool at_once) {
    uint64_t less = 0;
    struct entry before;
    if (freed) {
        count(kind, what, -1, &less);
        less = let_go(what, less);
    } else {
        table_put(&held[kind], what, &before); /* without room for the record it stays charged for the life of the
                                                * process */
    }
    if (at_once)
        account_end_free(what->card, less);
    else
        account_end_free_later(what->card, less);
}

CUresult held_export(uint64_t address, uint64_t name) {
    struct entry what, before;
    if (!table_get(&held[HELD_MEMORY], address, &what)) return CUDA_SUCCESS;
    what.bytes |= EXPORTED;
    table_put(&held[HELD_MEMORY], &what, &before);
    return shared_export(what.card, shared_number(SHARED_HELD, what.serial), name, shared_of(&what));
}

/* ---- the end of a context --------------------------------------------------------------------------------------- */

enum { AT_ONCE = 64 };

struct leaving {
    uint64_t context;
    uint32_t before, count;
    struct entry entries[AT_ONCE];
};

static bool leaves(const struct entry *entry, void *argument) {
    struct leaving *leaving = argument;
    if (entry->of != leaving->context || (int32_t)(entry->serial - leaving->before) >= 0) return false;
    if (leaving->count == AT_ONCE) return false;
    leaving->entries[leaving->count++] = *entry;
    return true;
}

void held_context_gone(CUcontext context, uint32_t before) {
    for (int kind = 0; kind < HELD_KINDS; kind++) {
        struct leaving leaving;
        do {
            leaving = (struct leaving){.context = (uint64_t)context, .before = before};
            table_sweep(&held[kind], leaves, &leaving);
            for (uint32_t n = 0; n < leaving.count; n++) gone((enum held_kind)kind, &leaving.entries[n]);
        } while (leaving.count == AT_ONCE);
    }
}

void held_forget(void) {
    for (int kind = 0; kind < HELD_KINDS; kind++) table_forget(&held[kind]);
    table_forget(&blocks);
}
