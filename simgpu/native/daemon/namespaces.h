/* Process numbers as others see them. */
#pragma once

#include "../common/words.h"

/* The number of `pid` in the pid namespace of `viewer`; both as we see them. 0: it has none there, or can't be known.
 */
u32 pid_as_seen_by(u32 viewer, u32 pid);
