/* Which address of the driver's is which hooked function. Without locks: it is filled once, maybe by several threads at
 * once, which write the same in the same order; then only read. */
#pragma once

#include "hooking.h"

/* The hooked function `name` is at `theirs` in the driver; `ours` is our entry for it. */
HIDDEN void known_hook(const char *name, void *theirs, void *ours);

/* After all hooks: `name`, which has no hook, is at `theirs`. Where a hook of another function has that address too, as
 * with one that only refuses, it is nobody's: the hook would be called with arguments of another type. */
HIDDEN void known_other(const char *name, void *theirs);

/* Our entry for the function at `theirs`, or `theirs` itself. */
HIDDEN void *known_entry(void *theirs);
