/* System calls without libc's wrappers: those may be interposed, are cancellation points, and some have new symbol
 * versions. */
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#define SYSTEM(name, ...) syscall(SYS_##name, __VA_ARGS__)
