/* Hash tables of what this process holds, by address or handle. Thread-safe. They use pages of their own, so that hooks
 * need no malloc, and hold at most TABLE_MOST entries, so that a program harms only itself.
 *
 * Locks are held for a few instructions: no driver function is called under one.
 */
#pragma once

#include "../core/os.h"

#include <stdatomic.h>

enum { TABLE_SHARDS = 64, TABLE_MOST = 1 << 24 };

/* The entry of one key. `times` 0 and `bytes` 0: nothing. */
struct entry {
    uint64_t key;
    uint64_t bytes; /* bytes charged, or length */
    uint64_t of; /* context or memory object, as the table's owner defines it */
    uint32_t serial; /* when it was inserted; increases and wraps */
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

/* Inserts an entry; the previous one of the key, if any, is stored in *before (else times = 0). False: there is no
 * room. Keys are never 0. Entries in the table have times > 0. */
HIDDEN bool table_put(struct table *table, const struct entry *entry, struct entry *before);
HIDDEN bool table_get(struct table *table, uint64_t key, struct entry *found);
HIDDEN bool table_take(struct table *table, uint64_t key, struct entry *found);

/* Adds `by` to times; at 0 the entry is removed. *now: the entry afterwards (times 0: removed or absent). False: there
 * is no room. */
HIDDEN bool table_count(struct table *table, uint64_t key, int by, struct entry *now);

/* Calls `goes` for each entry, under its lock, and removes those for which it returns true. */
HIDDEN void table_sweep(struct table *table, bool (*goes)(const struct entry *entry, void *argument), void *argument);

/* In a forked child: forgets everything that the parent held, regardless of who held a lock. */
HIDDEN void table_forget(struct table *table);

static inline bool table_is_empty(struct table *table) { return atomic_load(&table->entries) == 0; }
