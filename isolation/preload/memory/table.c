/* Open addressing with linear probing; removal moves later entries back, so there are no tombstones. */
#include "table.h"

#include <string.h>

enum { FIRST_ROOM = 64 };

static uint64_t hash_of(uint64_t key) {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15ull;
    return key ^ key >> 29;
}

static struct shard *shard_of(struct table *table, uint64_t key) {
    struct shard *shard = &table->shards[hash_of(key) >> 58];
    os_lock(&shard->lock);
    return shard;
}

/* The slot of the key, or the free slot where it would go. The shard must have room for one more. */
static uint32_t slot_of(const struct shard *shard, uint64_t key) {
    uint32_t slot = (uint32_t)hash_of(key) & (shard->room - 1);
    while (shard->slots[slot].key && shard->slots[slot].key != key) slot = (slot + 1) & (shard->room - 1);
    return slot;
}

static struct entry *find(const struct shard *shard, uint64_t key) {
    struct entry *entry = shard->room ? &shard->slots[slot_of(shard, key)] : NULL;
    return entry && entry->key ? entry : NULL;
}

/* Keeps the table at most three quarters full, so that every search ends soon. */
static bool make_room(struct shard *shard) {
    if (shard->room && 4 * (uint64_t)(shard->count + 1) <= 3 * (uint64_t)shard->room) return true;
    struct shard greater = {.room = shard->room ? 2 * shard->room : FIRST_ROOM};
    if (greater.room > TABLE_MOST / TABLE_SHARDS) return false;
    greater.slots = os_map(greater.room * sizeof *greater.slots);
    if (!greater.slots) return false;
    for (uint32_t slot = 0; slot < shard->room; slot++) {
        const struct entry *entry = &shard->slots[slot];
        if (entry->key) greater.slots[slot_of(&greater, entry->key)] = *entry;
    }
    if (shard->slots) os_unmap(shard->slots, shard->room * sizeof *shard->slots);
    shard->room = greater.room;
    shard->slots = greater.slots;
    return true;
}

static void removed(struct table *table, struct shard *shard, uint32_t hole) {
    const uint32_t mask = shard->room - 1;
    for (uint32_t slot = (hole + 1) & mask; shard->slots[slot].key; slot = (slot + 1) & mask) {
        const uint32_t home = (uint32_t)hash_of(shard->slots[slot].key) & mask;
        if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
        shard->slots[hole] = shard->slots[slot];
        hole = slot;
    }
    shard->slots[hole] = (struct entry){0};
    shard->count--;
    atomic_fetch_sub(&table->entries, 1);
}

static struct entry *insert(struct table *table, struct shard *shard, const struct entry *entry) {
    if (!make_room(shard)) return NULL;
    struct entry *slot = &shard->slots[slot_of(shard, entry->key)];
    *slot = *entry;
    shard->count++;
    atomic_fetch_add(&table->entries, 1);
    return slot;
}

bool table_put(struct table *table, const struct entry *entry, struct entry *before) {
    struct shard *shard = shard_of(table, entry->key);
    struct entry *there = find(shard, entry->key);
    bool done = true;
    *before = there ? *there : (struct entry){0};
    if (there)
        *there = *entry;
    else
        done = insert(table, shard, entry);
    os_unlock(&shard->lock);
    return done;
}

bool table_get(struct table *table, uint64_t key, struct entry *found) {
    if (table_is_empty(table)) return false;
    struct shard *shard = shard_of(table, key);
    const struct entry *entry = find(shard, key);
    if (entry) *found = *entry;
    os_unlock(&shard->lock);
    return entry;
}

bool table_take(struct table *table, uint64_t key, struct entry *found) {
    if (table_is_empty(table)) return false;
    struct shard *shard = shard_of(table, key);
    const struct entry *entry = find(shard, key);
    if (entry) {
        *found = *entry;
        removed(table, shard, (uint32_t)(entry - shard->slots));
    }
    os_unlock(&shard->lock);
    return entry;
}

bool table_count(struct table *table, uint64_t key, int by, struct entry *now) {
    struct shard *shard = shard_of(table, key);
    const struct entry fresh = {.key = key};
    struct entry *entry = find(shard, key);
    if (!entry && by > 0) entry = insert(table, shard, &fresh);
    if (entry) entry->times = (uint16_t)(entry->times + by);
    *now = entry ? *entry : (struct entry){0};
    if (entry && !entry->times) removed(table, shard, (uint32_t)(entry - shard->slots));
    os_unlock(&shard->lock);
    return entry || by <= 0;
}

/* An entry moved into a freed slot is visited there; one moved across the end may be visited twice. */
static void sweep_shard(struct table *table, struct shard *shard, bool (*goes)(const struct entry *, void *),
                        void *argument) {
    os_lock(&shard->lock);
    for (uint32_t slot = 0; slot < shard->room;) {
        if (shard->slots[slot].key && goes(&shard->slots[slot], argument))
            removed(table, shard, slot);
        else
            slot++;
    }
    os_unlock(&shard->lock);
}

void table_sweep(struct table *table, bool (*goes)(const struct entry *, void *), void *argument) {
    if (table_is_empty(table)) return;
    for (int n = 0; n < TABLE_SHARDS; n++) sweep_shard(table, &table->shards[n], goes, argument);
}

/* The pages are the child's own copies. Those of a shard that was being enlarged are leaked. */
void table_forget(struct table *table) {
    for (int n = 0; n < TABLE_SHARDS; n++) {
        const struct shard before = table->shards[n];
        table->shards[n] = (struct shard){0};
        if (before.slots) os_unmap(before.slots, before.room * sizeof *before.slots);
    }
    atomic_store(&table->entries, 0);
}
