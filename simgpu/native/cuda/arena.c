/* Addresses of device memory, and the data behind them.
 *
 * An inaccessible stretch of address space gives every allocation an address of its own. A second stretch of the same
 * length maps a memory file: the data of arena address A are at the same offset in the file. So data need no call and
 * no mapping of their own, are allocated page by page when touched, and can be shared with another process.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CLOSED = PROT_NONE, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, SHOWN = MAP_SHARED | MAP_NORESERVE };

#define GRANULE (2 * SIM_MIB)

struct hole {
    u64 start, bytes;
    struct hole *next;
};

static u64 base;            /* 0: not reserved yet */
static char *window;
static int file = -1;
static struct hole *holes;  /* sorted by address; everything behind the last one is in use */

/* Excludes it from forked children, which have no use for it, and from core dumps. */
static void hide(void *stretch, u64 bytes) {
    madvise(stretch, bytes, MADV_DONTFORK);
    madvise(stretch, bytes, MADV_DONTDUMP);
}

/* Aligned manually: programs expect 2 MiB, mmap guarantees a page. */
static u64 reserve_addresses(void) {
    char *all = mmap(NULL, ARENA_BYTES + GRANULE, CLOSED, PRIVATE, -1, 0);
    if (all == MAP_FAILED) return 0;
    hide(all, ARENA_BYTES + GRANULE);
    return round_up((u64)all, GRANULE);
}

static bool open_window(void) {
    file = memfd_create("simgpu", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)ARENA_BYTES) != 0) return false;
    window = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, SHOWN, file, 0);
    if (window == MAP_FAILED) return false;
    hide(window, ARENA_BYTES);
    return true;
}

static bool arena_begin(void) {
    if (base) return true;
    holes = malloc(sizeof *holes);
    if (!holes) return false;
    const u64 addresses = reserve_addresses();
    if (!addresses || !open_window()) {
        if (addresses) munmap((void *)addresses, ARENA_BYTES);
        if (file >= 0) close(file);
        free(holes);
        holes = NULL;
        file = -1;
        return false;
    }
    *holes = (struct hole){.start = addresses, .bytes = ARENA_BYTES};
    base = addresses;
    return true;
}

/* Removes [start, start + bytes) from the hole. False: no memory to record what is left on both sides. */
static bool hole_cut(struct hole **link, u64 start, u64 bytes) {
    struct hole *hole = *link;
    const u64 behind = hole->start + hole->bytes - (start + bytes);
    const u64 before = start - hole->start;
    if (before && behind) {
        struct hole *rest = malloc(sizeof *rest);
        if (!rest) return false;
        *rest = (struct hole){.start = start + bytes, .bytes = behind, .next = hole->next};
        hole->next = rest;
        hole->bytes = before;
    } else if (before || behind) {
        hole->start = before ? hole->start : start + bytes;
        hole->bytes = before + behind;
    } else {
        *link = hole->next;
        free(hole);
    }
    return true;
}

u64 arena_take(u64 bytes, u64 alignment) {
    KEEP_ERRNO;
    if (bytes == 0 || bytes > ARENA_BYTES || !arena_begin()) return 0;
    bytes = round_up(bytes, GRANULE);
    alignment = alignment < GRANULE ? GRANULE : alignment;
    for (struct hole **link = &holes; *link; link = &(*link)->next) {
        const u64 start = round_up((*link)->start, alignment);
        const u64 end = (*link)->start + (*link)->bytes;
        if (start < end && end - start >= bytes) return hole_cut(link, start, bytes) ? start : 0;
    }
    return 0;
}

bool arena_take_at(u64 address, u64 bytes) {
    KEEP_ERRNO;
    for (struct hole **link = &holes; *link; link = &(*link)->next)
        if (address - (*link)->start < (*link)->bytes)
            return (*link)->start + (*link)->bytes - address >= bytes && hole_cut(link, address, bytes);
    return false;
}

/* Adds [start, start + bytes) to the holes. Without memory for that it is never used again. */
static void hole_add(u64 start, u64 bytes) {
    struct hole **link = &holes, *before = NULL;
    for (; *link && (*link)->start < start; link = &(*link)->next) before = *link;
    struct hole *after = *link;
    if (before && before->start + before->bytes == start) {
        before->bytes += bytes;
    } else {
        before = malloc(sizeof *before);
        if (!before) return;
        *before = (struct hole){.start = start, .bytes = bytes, .next = after};
        *link = before;
    }
    if (after && before->start + before->bytes == after->start) {
        before->bytes += after->bytes;
        before->next = after->next;
        free(after);
    }
}

void arena_give(u64 address, u64 bytes) {
    KEEP_ERRNO;
    bytes = round_up(bytes, GRANULE);
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)arena_offset(address), (off_t)bytes);
    hole_add(address, bytes);
}

/* Not even recorded: another process may still have the data and must not see later data there, and addresses are
 * plentiful. */
void arena_retire(u64 address, u64 bytes) { (void)address, (void)bytes; }

bool arena_has(u64 address) { return base && address - base < ARENA_BYTES; }

void *arena_data(u64 address) { return window + (address - base); }

bool arena_expose(u64 address, u64 bytes) {
    KEEP_ERRNO;
    void *here = (void *)address;
    return mmap(here, bytes, PROT_READ | PROT_WRITE, PRIVATE | MAP_FIXED, -1, 0) == here;
}

int arena_file(void) { return file; }

u64 arena_offset(u64 address) { return address - base; }

bool arena_import(u64 address, u64 bytes, int from, u64 offset) {
    KEEP_ERRNO;
    void *data = arena_data(address);
    if (mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, from, (off_t)offset) != data) return false;
    hide(data, bytes);
    return true;
}

void arena_restore(u64 address, u64 bytes) {
    KEEP_ERRNO;
    char *data = arena_data(address);
    mmap((void *)address, bytes, CLOSED, PRIVATE | MAP_FIXED, -1, 0);
    mmap(data, bytes, PROT_READ | PROT_WRITE, SHOWN | MAP_FIXED, file, (off_t)arena_offset(address));
    hide((void *)address, bytes);
    hide(data, bytes);
}
