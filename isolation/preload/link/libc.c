/* libc.so.6 */
#include "symbols.h"

SYMBOL(__cxa_atexit, GLIBC_2.2.5)
SYMBOL(__errno_location, GLIBC_2.2.5)
SYMBOL(__register_atfork, GLIBC_2.3.2)
SYMBOL(clock_gettime, GLIBC_2.17)
SYMBOL(secure_getenv, GLIBC_2.17)
SYMBOL(syscall, GLIBC_2.2.5)

SYMBOL(bcmp, GLIBC_2.2.5)
SYMBOL(memchr, GLIBC_2.2.5)
SYMBOL(memcmp, GLIBC_2.2.5)
SYMBOL(memcpy, GLIBC_2.14)
SYMBOL(memmove, GLIBC_2.2.5)
SYMBOL(memset, GLIBC_2.2.5)
SYMBOL(strcmp, GLIBC_2.2.5)
SYMBOL(strcspn, GLIBC_2.2.5)
SYMBOL(strlen, GLIBC_2.2.5)
SYMBOL(strncmp, GLIBC_2.2.5)
SYMBOL(strrchr, GLIBC_2.2.5)
