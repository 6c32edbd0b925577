/* Address ranges: a tree by address for look-ups, a list for iteration. */
#define _GNU_SOURCE
#include "memory.h"

#include <search.h>
#include <stdlib.h>

struct range *ranges_all;

static void *tree;
static u64 latest_id;

/* Overlapping ranges compare equal: so an address finds its range, and no two can overlap. */
static int compare(const void *left, const void *right) {
    const struct range *a = left, *b = right;
    if (a->start + a->bytes <= b->start) return -1;
    return a->start >= b->start + b->bytes;
}

struct range *range_add(const struct range *like) {
    struct range *range = malloc(sizeof *range);
    if (!range) return NULL;
    *range = *like;
    range->id = ++latest_id;
    struct range **found = tsearch(range, &tree, compare);
    if (!found || *found != range) {
        free(range);
        return NULL;
    }
    range->previous = NULL;
    range->next = ranges_all;
    if (ranges_all) ranges_all->previous = range;
    ranges_all = range;
    return range;
}

void range_remove(struct range *range) {
    tdelete(range, &tree, compare);
    if (range->next) range->next->previous = range->previous;
    if (range->previous)
        range->previous->next = range->next;
    else
        ranges_all = range->next;
    free(range);
}

struct range *range_at(u64 address) {
    const struct range key = {.start = address, .bytes = 1};
    struct range **found = tfind(&key, &tree, compare);
    return found ? *found : NULL;
}

struct range *range_starting(u64 address, enum range_kind kind) {
    struct range *range = range_at(address);
    return range && range->start == address && range->kind == kind ? range : NULL;
}

bool ranges_cover(u64 address, u64 bytes) {
    const u64 end = address + bytes;
    if (end < address) return false;
    while (address < end) {
        const struct range *range = range_at(address);
        if (!range || range->closed) return false;
        address = range->start + range->bytes;
    }
    return true;
}

void *memory_data(CUdeviceptr address, size_t *length) {
    LOCKED;
    const struct range *range = range_at(address);
    if (!range || range->closed) return NULL;
    *length = range->start + range->bytes - address;
    return range->data ? range->data + (address - range->start) : NULL;
}
