/* The entries of names/entries.S and the driver behind them. Common to both objects; each describes its own part in a
 * `library`. */
#pragma once

#include "../core/hook.h"

/* Description of an object. */
struct library {
    const char *file; /* the file name of the driver's library, and of ours */
    const char *start; /* a function that every driver has, so that the installer never hides ours */
    /* Returns a stand-in for a function that the driver lacks; `driver`: whether there is a driver. */
    void *(*missing)(const char *name, bool driver);
    /* Returns the function to put in a slot in place of the driver's function `found`; NULL: always use the
     * driver's. */
    void *(*through)(uint32_t place, const char *name, void *found);
};
extern HIDDEN const struct library library;

/* ---- names/entries.S --------------------------------------------------------------------------------------------- */

typedef void entry_function(void);

/* Indexed by place. NULL: not resolved yet. */
extern HIDDEN entry_function *_Atomic entry_slots[];

/* Nonzero once the driver was searched for and the slots of all hooks are filled. Entries of hooks read it. */
extern HIDDEN _Atomic uint32_t entry_ready;

/* A hook's entry, as an offset from entry_hooks, and the place of its name. */
struct entry_hook {
    int32_t entry;
    uint32_t place;
};

/* Maps a name, from a version on, to the function at a place, as cuGetProcAddress does; `entry` is 0 if the function
 * has no hook. */
struct entry_route {
    int32_t entry;
    uint32_t name, version, per_thread, place;
};
extern HIDDEN const struct entry_hook entry_hooks[];
extern HIDDEN const struct entry_route entry_routes[];
extern HIDDEN const char entry_end[];

enum { ENTRY_SPARE_BYTES = 32 };
extern HIDDEN const char entry_spares[];

/* The function that an entry with an empty slot jumps to. Preserves errno. */
HIDDEN entry_function *entry_target(uint32_t place);

/* ---- names.c ----------------------------------------------------------------------------------------------------- */

/* The number of names; places from there on are spares. */
extern HIDDEN const uint32_t names_count;
HIDDEN const char *name_at(uint32_t place);

/* ---- driver.c ---------------------------------------------------------------------------------------------------- */

/* A function of the driver's library or of its dependencies; NULL if there is none. Locates the driver at the first
 * call. */
HIDDEN void *driver_symbol(const char *name);

/* A file that a program opens as the driver: used only if the search finds no driver. */
HIDDEN void driver_hint(const char *path);

/* The dynamic linker's own dlopen: within the process that name resolves to ours. */
typedef void *open_function(const char *path, int flags);
HIDDEN open_function *next_dlopen(void);

/* ---- ld_cache.c -------------------------------------------------------------------------------------------------- */

/* Calls `found` for each path in the dynamic linker's cache for `file` on this architecture until it returns true, and
 * returns that. `cache` need not be valid. */
HIDDEN bool ld_cache_find(const void *cache, size_t bytes, const char *file,
                          bool (*found)(const char *path, void *argument), void *argument);
