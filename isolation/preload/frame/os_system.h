/* System calls without libc's wrappers: these may be interposed by others, are points of cancellation, and some got new
 * symbol versions. */
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYSTEM(name, ...) syscall(SYS_##name, __VA_ARGS__)

/* Keeps errno over what follows in this block, whatever it does. */
#define KEEP_ERRNO __attribute__((cleanup(restore_errno))) const int kept_errno = errno

static inline void restore_errno(const int *kept) { errno = *kept; }
