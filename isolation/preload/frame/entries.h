/* The entries of names/entries.S and the driver behind them. Both objects have all this; each says in a `library` what
 * is its own. */
#pragma once

#include "../core/hook.h"

/* What an object is. */
struct library {
    const char *file; /* the name that the driver's library has, and ours */
    const char *start; /* a function that every driver has, so that the installer never hides ours */
    /* A function that answers for one that the driver lacks; `driver` is whether there is one. */
    void *(*missing)(const char *name, bool driver);
    /* What a slot is to have in place of `found`, that function of the driver's; NULL: nothing else is called. */
    void *(*through)(uint32_t place, const char *name, void *found);
};
extern HIDDEN const struct library library;

/* ---- names/entries.S --------------------------------------------------------------------------------------------- */

typedef void entry_function(void);

/* By place. NULL: not asked yet. */
extern HIDDEN entry_function *_Atomic entry_slots[];

/* Not zero once the driver was looked for and the slots of all hooks are filled. Hooks' entries read it. */
extern HIDDEN _Atomic uint32_t entry_ready;

/* A hook's entry, as a distance from entry_hooks, and the place of its name. */
struct entry_hook {
    int32_t entry;
    uint32_t place;
};

/* That cuGetProcAddress finds the function of this place by this name, from this version on; `entry` is 0 if it has no
 * hook. */
struct entry_route {
    int32_t entry;
    uint32_t name, version, per_thread, place;
};
extern HIDDEN const struct entry_hook entry_hooks[];
extern HIDDEN const struct entry_route entry_routes[];
extern HIDDEN const char entry_end[];

enum { ENTRY_SPARE_BYTES = 32 };
extern HIDDEN const char entry_spares[];

/* What an entry whose slot is empty jumps to. Keeps errno. */
HIDDEN entry_function *entry_target(uint32_t place);

/* ---- names.c ----------------------------------------------------------------------------------------------------- */

/* How many names there are; places from there on are spares. */
extern HIDDEN const uint32_t names_count;
HIDDEN const char *name_at(uint32_t place);

/* ---- driver.c ---------------------------------------------------------------------------------------------------- */

/* A function of the driver's library, or of one that it needs; NULL where there is none. Looks for the driver at the
 * first call. */
HIDDEN void *driver_symbol(const char *name);

/* A file that a program takes for the driver: it is one if there is none where drivers are looked for. */
HIDDEN void driver_hint(const char *path);

/* The dynamic linker's own dlopen: the process finds ours by that name. */
typedef void *open_function(const char *path, int flags);
HIDDEN open_function *next_dlopen(void);

/* ---- ld_cache.c -------------------------------------------------------------------------------------------------- */

/* Calls `found` for each path that the dynamic linker's cache has for `file` on this architecture until it returns
 * true, and returns that. `cache` may be anything. */
HIDDEN bool ld_cache_find(const void *cache, size_t bytes, const char *file,
                          bool (*found)(const char *path, void *argument), void *argument);
