/* Open addressing, never full; nothing leaves the table. */
#include "known.h"
#include "driver.h"

#include <stdatomic.h>
#include <string.h>

enum { PLACES = 4096 };

struct known {
    void *_Atomic theirs;
    void *_Atomic ours; /* `theirs` where it is nobody's hook */
    const char *_Atomic name;
};

static struct known table[PLACES];

_Static_assert(HOOKS * 12 < PLACES, "six forms of a name at most, each at two addresses");

static struct known *first_place(const void *theirs) { return &table[(uintptr_t)theirs * 0x9e3779b97f4a7c15u >> 52]; }

static struct known *next_place(struct known *place) { return place + 1 < table + PLACES ? place + 1 : table; }

static struct known *find(void *theirs, bool add) {
    for (struct known *place = first_place(theirs);; place = next_place(place)) {
        void *there = atomic_load_explicit(&place->theirs, memory_order_acquire);
        if (!there && !add) return NULL;
        if (there == theirs || (!there && atomic_compare_exchange_strong(&place->theirs, &there, theirs)) ||
            there == theirs)
            return place;
    }
}

/* Forms of one function, such as cuMemFree and cuMemFree_v2: where they share an address, either hook will do. */
static bool of_one_function(const char *one, const char *other) {
    size_t length = strcspn(one, "_");
    return length == strcspn(other, "_") && !memcmp(one, other, length);
}

static void dispute(struct known *place, const char *name, void *theirs) {
    const char *owner = atomic_load(&place->name);
    if (owner && !of_one_function(owner, name)) atomic_store(&place->ours, theirs);
}

void known_hook(const char *name, void *theirs, void *ours) {
    if (!theirs) return;
    struct known *place = find(theirs, true);
    void *before = NULL;
    const char *nobody = NULL;
    atomic_compare_exchange_strong(&place->name, &nobody, name);
    atomic_compare_exchange_strong(&place->ours, &before, ours);
    dispute(place, name, theirs);
}

void known_other(const char *name, void *theirs) {
    struct known *place = theirs ? find(theirs, false) : NULL;
    if (place) dispute(place, name, theirs);
}

void *known_entry(void *theirs) {
    struct known *place = find(theirs, false);
    return place ? atomic_load_explicit(&place->ours, memory_order_acquire) : theirs;
}
