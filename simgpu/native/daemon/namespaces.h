/* Translation of pids between namespaces. */
#pragma once

#include "../common/words.h"

/* The pid of `pid` in the pid namespace of `viewer`; both arguments are pids of our namespace. 0: none there, or
 * unknown.
 */
u32 pid_as_seen_by(u32 viewer, u32 pid);
