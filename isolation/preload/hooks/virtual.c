/* Virtual memory management: physical memory lives as long as a handle or a mapping of it. Memory made by other
 * processes is theirs: an object of no card, with the name under which it was opened. */
#include "../memory/shared.h"
#include "hooks.h"

/* Objects have numbers of ours; times: handles and mappings. handles: of: the object; times: how often it was given
 * out. mappings, by address: of: the object; bytes: length. */
static struct table objects, handles, mappings, exported;
static _Atomic uint64_t last_object;

REAL_CALL(cuMemRelease, CUmemGenericAllocationHandle handle);
REAL_CALL(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *handle, void *address);
REAL_CALL(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle);

/* Keys must not be 0. */
static uint64_t key_of(CUmemGenericAllocationHandle handle) { return handle + 1; }

/* ---- objects ---------------------------------------------------------------------------------------------------- */

/* False: the object no longer exists. */
static bool hold(uint64_t object) {
    struct entry now;
    if (!table_count(&objects, object, 1, &now)) return false;
    if (now.bytes) return true;
    table_count(&objects, object, -1, &now);
    return false;
}

/* Whether this was the last reference; if so, *object is what it was. */
static bool drop(uint64_t number, struct entry *object) {
    return table_count(&objects, number, -1, object) && object->key && !object->times;
}

/* The driver has released it: returns how much becomes credit. */
static uint64_t ended(const struct entry *object) {
    struct entry entry;
    if (object->card == NO_CARD) return shared_close((unsigned)object->serial, object->of), 0;
    if (!table_take(&exported, object->key, &entry)) return object->bytes;
    account_let_go(object->card, shared_number(SHARED_VIRTUAL, object->key), object->bytes, object->bytes);
    return 0;
}

/* The driver has released one handle or mapping. Counted only here, since another thread may have released the rest
 * before.
 */
static uint64_t let_go(uint64_t number, struct entry *object) { return drop(number, object) ? ended(object) : 0; }

/* The object went without a call that we saw. */
static void gone(uint64_t number) {
    struct entry object;
    const uint64_t less = let_go(number, &object);
    if (less) account_correct(object.card, 0, less);
}

/* Marks a call as in flight on the object's card, for the release. */
static unsigned begin_letting_go(uint64_t number) {
    struct entry object;
    const unsigned card = table_get(&objects, number, &object) ? object.card : NO_CARD;
    account_begin_free(card);
    return card;
}

static void end_letting_go(uint64_t number, unsigned card, bool done) {
    struct entry object;
    account_end_free(card, done ? let_go(number, &object) : 0);
}

/* ---- handles ---------------------------------------------------------------------------------------------------- */

/* Restores a handle that the driver failed to release. */
static void handle_again(const struct entry *known) {
    struct entry again = *known, now;
    again.times = 1;
    if (table_get(&handles, known->key, &now))
        table_count(&handles, known->key, 1, &now);
    else
        table_put(&handles, &again, &now);
}

HOOK_CALL(cuMemRelease, CUmemGenericAllocationHandle handle) {
    struct entry known;
    if (!table_count(&handles, key_of(handle), -1, &known) || !known.key) return DRIVER(REAL(cuMemRelease)(handle));
    const unsigned card = begin_letting_go(known.of);
    const CUresult result = DRIVER(REAL(cuMemRelease)(handle));
    if (result != CUDA_SUCCESS) handle_again(&known);
    end_letting_go(known.of, card, result == CUDA_SUCCESS);
    return result;
}

/* A handle of the same value that is still recorded was released without our seeing it, together with its object. */
static bool note_handle(CUmemGenericAllocationHandle handle, uint64_t object) {
    const struct entry entry = {.key = key_of(handle), .of = object, .times = 1};
    struct entry before;
    if (!table_put(&handles, &entry, &before)) return false;
    for (; before.times; before.times--) gone(before.of);
    return true;
}

static bool note_new(CUmemGenericAllocationHandle handle, struct entry object) {
    struct entry entry;
    object.key = atomic_fetch_add(&last_object, 1) + 1;
    object.times = 1;
    if (!table_put(&objects, &object, &entry)) return false;
    if (note_handle(handle, object.key)) return true;
    table_take(&objects, object.key, &entry);
    return false;
}

static bool note_object(CUmemGenericAllocationHandle handle, unsigned card, uint64_t bytes) {
    return note_new(handle, (struct entry){.bytes = bytes, .card = (uint16_t)card});
}

HOOK_CALL(cuMemCreate, CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *like,
          unsigned long long flags) {
    CUmemGenericAllocationHandle made;
    if (!handle || !bytes || !like) return DRIVER(REAL(cuMemCreate)(handle, bytes, like, flags));
    const unsigned card = card_at(&like->location, like->type);
    if (card == HOST_MEMORY) return DRIVER(REAL(cuMemCreate)(handle, bytes, like, flags));
    TRY(account_begin(card, bytes));
    CUresult result = DRIVER(REAL(cuMemCreate)(&made, bytes, like, flags));
    if (result == CUDA_SUCCESS && !note_object(made, card, bytes)) {
        DRIVER(REAL(cuMemRelease)(made));
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    account_end(card, result == CUDA_SUCCESS ? 0 : bytes);
    if (result == CUDA_SUCCESS) *handle = made;
    return result;
}

/* The driver gave out a handle again, or another handle of the same object. */
static void another_handle(CUmemGenericAllocationHandle handle, uint64_t object) {
    struct entry known;
    if (!hold(object)) return;
    if (table_get(&handles, key_of(handle), &known) && known.of == object)
        table_count(&handles, key_of(handle), 1, &known);
    else
        note_handle(handle, object);
}

struct search {
    uint64_t address, object;
};

static bool is_inside(const struct entry *mapping, void *argument) {
    struct search *search = argument;
    if (search->address - mapping->key < mapping->bytes) search->object = mapping->of;
    return false;
}

static uint64_t object_at(uint64_t address) {
    struct search search = {.address = address};
    struct entry mapping;
    if (table_get(&mappings, address, &mapping)) return mapping.of;
    table_sweep(&mappings, is_inside, &search);
    return search.object;
}

HOOK_CALL(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *handle, void *address) {
    const CUresult result = DRIVER(REAL(cuMemRetainAllocationHandle)(handle, address));
    const uint64_t object = result == CUDA_SUCCESS ? object_at((uint64_t)address) : 0;
    if (object) another_handle(*handle, object);
    return result;
}

/* ---- sharing between processes ---------------------------------------------------------------------------------- */

REAL_CALL(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *handle, void *from, unsigned type);

/* In the process that has it already, the handle is known and costs nothing more. Without room for the record it counts
 * as open for the life of the process. */
static void imported(CUmemGenericAllocationHandle handle, unsigned card, uint64_t name) {
    struct entry known;
    if (!table_get(&handles, key_of(handle), &known)) {
        note_new(handle, (struct entry){.bytes = 1, .of = name, .card = NO_CARD, .serial = card});
        return;
    }
    another_handle(handle, known.of);
    shared_close(card, name);
}

/* The broker knows by the name which card it is on. */
static CUresult import_named(CUmemGenericAllocationHandle *handle, void *from, unsigned type, uint64_t name) {
    uint64_t size;
    TRY(shared_open(0, name, &size));
    const CUresult result = DRIVER(REAL(cuMemImportFromShareableHandle)(handle, from, type));
    if (result == CUDA_SUCCESS)
        imported(*handle, 0, name);
    else
        shared_close(0, name);
    return result;
}

HOOK_CALL(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *handle, void *from, unsigned type) {
    struct entry known;
    uint64_t name;
    if (handle && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && session_cards() &&
        shared_name_of_descriptor((int)(intptr_t)from, &name))
        return import_named(handle, from, type, name);
    const CUresult result = DRIVER(REAL(cuMemImportFromShareableHandle)(handle, from, type));
    if (result == CUDA_SUCCESS && table_get(&handles, key_of(*handle), &known)) another_handle(*handle, known.of);
    return result;
}

static CUresult export_object(const void *to, unsigned type, const struct entry *object) {
    const uint64_t number = shared_number(SHARED_VIRTUAL, object->key);
    uint64_t name;
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && shared_name_of_descriptor(*(const int *)to, &name))
        return shared_export(object->card, number, name, object->bytes);
    return shared_export_to_anybody(object->card, number, object->bytes);
}

HOOK_CALL(cuMemExportToShareableHandle, void *to, CUmemGenericAllocationHandle handle, unsigned type,
          unsigned long long flags) {
    struct entry known, object, now;
    TRY(DRIVER(REAL(cuMemExportToShareableHandle)(to, handle, type, flags)));
    if (!table_get(&handles, key_of(handle), &known) || !table_get(&objects, known.of, &object)) return CUDA_SUCCESS;
    if (object.card == NO_CARD || !table_count(&exported, known.of, 1, &now)) return CUDA_SUCCESS;
    const CUresult result = export_object(to, type, &object);
    if (result != CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) os_close(*(int *)to);
    return result;
}

/* ---- mappings --------------------------------------------------------------------------------------------------- */

/* Counted before the driver maps it: a handle released meanwhile must not be the last reference. */
HOOK_CALL(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
          unsigned long long flags) {
    struct entry known, before;
    if (!address || !table_get(&handles, key_of(handle), &known) || !hold(known.of))
        return DRIVER(REAL(cuMemMap)(address, bytes, offset, handle, flags));
    const struct entry mapping = {.key = address, .bytes = bytes, .of = known.of, .times = 1};
    CUresult result = DRIVER(REAL(cuMemMap)(address, bytes, offset, handle, flags));
    if (result != CUDA_SUCCESS) {
        gone(known.of);
    } else if (table_put(&mappings, &mapping, &before)) {
        if (before.times) gone(before.of);
    } /* otherwise it stays charged for the life of the process */
    return result;
}

struct unmapping {
    struct entry mapping;
    unsigned card;
};

/* Removes the records of mappings in this address range, which may have gaps. */
static size_t take_mappings(uint64_t address, uint64_t bytes, struct unmapping *all, size_t most) {
    size_t count = 0;
    for (uint64_t passed = 0; passed < bytes && count < most;) {
        const bool is_mapped = table_take(&mappings, address + passed, &all[count].mapping);
        passed += is_mapped ? all[count++].mapping.bytes : BLOCK_BYTES;
    }
    return count;
}

static void unmap_begin(struct unmapping *each) { each->card = begin_letting_go(each->mapping.of); }

static void unmap_end(const struct unmapping *each, bool done) {
    struct entry before;
    if (!done) table_put(&mappings, &each->mapping, &before);
    end_letting_go(each->mapping.of, each->card, done);
}

/* Each mapping is at least one block long; without pages for the records the mappings stay, and their memory stays
 * charged. */
HOOK_CALL(cuMemUnmap, CUdeviceptr address, size_t bytes) {
    const size_t most = bytes / BLOCK_BYTES < 1 ? 1 : bytes / BLOCK_BYTES;
    struct unmapping one, *all = &one;
    if (table_is_empty(&mappings)) return DRIVER(REAL(cuMemUnmap)(address, bytes));
    if (most > 1) all = os_map(most * sizeof *all);
    const size_t count = all ? take_mappings(address, bytes, all, most) : 0;
    for (size_t n = 0; n < count; n++) unmap_begin(&all[n]);
    const CUresult result = DRIVER(REAL(cuMemUnmap)(address, bytes));
    for (size_t n = 0; n < count; n++) unmap_end(&all[n], result == CUDA_SUCCESS);
    if (all && all != &one) os_unmap(all, most * sizeof *all);
    return result;
}

/* ---- the end of a device's contexts ----------------------------------------------------------------------------- */

/* Some drivers keep virtual memory until the process ends, others until the last context ends. So the driver is asked
 * about every handle and mapping. */
struct listing {
    struct entry *entries;
    size_t count, room;
};

static bool list(const struct entry *entry, void *argument) {
    struct listing *listing = argument;
    if (listing->count < listing->room) listing->entries[listing->count++] = *entry;
    return false;
}

static bool handle_is_gone(const struct entry *entry) {
    CUmemAllocationProp ignored;
    return DRIVER(REAL(cuMemGetAllocationPropertiesFromHandle)(&ignored, entry->key - 1)) != CUDA_SUCCESS;
}

static bool mapping_is_gone(const struct entry *entry) {
    CUmemGenericAllocationHandle handle;
    if (DRIVER(REAL(cuMemRetainAllocationHandle)(&handle, (void *)entry->key)) != CUDA_SUCCESS) return true;
    DRIVER(REAL(cuMemRelease)(handle));
    return false;
}

static void check_all(struct table *table, unsigned card, bool (*is_gone)(const struct entry *entry)) {
    struct listing listing = {.room = atomic_load(&table->entries)};
    struct entry object, entry;
    if (!listing.room || !(listing.entries = os_map(listing.room * sizeof *listing.entries))) return;
    table_sweep(table, list, &listing);
    for (size_t n = 0; n < listing.count; n++) {
        const struct entry *each = &listing.entries[n];
        if (!table_get(&objects, each->of, &object) || object.card != card || !is_gone(each)) continue;
        if (!table_take(table, each->key, &entry)) continue;
        for (unsigned times = entry.times; times; times--) gone(entry.of);
    }
    os_unmap(listing.entries, listing.room * sizeof *listing.entries);
}

void virtual_check(unsigned card) {
    check_all(&handles, card, handle_is_gone);
    check_all(&mappings, card, mapping_is_gone);
}

void virtual_forget(void) {
    table_forget(&objects);
    table_forget(&handles);
    table_forget(&mappings);
    table_forget(&exported);
}
