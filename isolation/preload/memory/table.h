/* Hash tables of what this process holds, by address or handle. Any number of threads; pages of our own, so that a hook
 * needs no malloc, and at most TABLE_MOST entries, so that a program harms only itself.
 *
 * The locks are held for a few instructions: no function of the driver is called under one.
 */
#pragma once

#include "../core/os.h"

#include <stdatomic.h>

enum { TABLE_SHARDS = 64, TABLE_MOST = 1 << 24 };

/* What is known of one key. `times` 0 and `bytes` 0: nothing. */
struct entry {
    uint64_t key;
    uint64_t bytes; /* charged, or that it is long */
    uint64_t of; /* context, memory object: as the table's owner has it */
    uint32_t serial; /* when it was put in; grows and wraps */
    uint16_t card, times;
};

struct shard {
    struct os_lock lock;
    uint32_t room, count; /* room: a power of 2, or 0 */
    struct entry *slots; /* key 0: free */
};

struct table {
    struct shard shards[TABLE_SHARDS];
    _Atomic uint32_t entries;
};

/* Puts it in; what was there under the key, if anything, goes to *before (else times = 0). False: there is no room.
 * Keys are never 0. An entry that is there has times > 0. */
HIDDEN bool table_put(struct table *table, const struct entry *entry, struct entry *before);
HIDDEN bool table_get(struct table *table, uint64_t key, struct entry *found);
HIDDEN bool table_take(struct table *table, uint64_t key, struct entry *found);

/* Adds `by` to times; at 0 the entry goes. What it is then (times 0: gone or not there); false: there is no room. */
HIDDEN bool table_count(struct table *table, uint64_t key, int by, struct entry *now);

/* Asks about each entry, under its lock; those for which the answer is true go. */
HIDDEN void table_sweep(struct table *table, bool (*goes)(const struct entry *entry, void *argument), void *argument);

/* In a forked child: what the parent held is forgotten, whichever thread had a lock. */
HIDDEN void table_forget(struct table *table);

static inline bool table_is_empty(struct table *table) { return atomic_load(&table->entries) == 0; }
