/* System calls without libc's wrappers: these may be interposed by others, are points of cancellation, and some got new
 * symbol versions. */
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#define SYSTEM(name, ...) syscall(SYS_##name, __VA_ARGS__)
