/* libdl.so.2 */
#include "symbols.h"

SYMBOL(dladdr, GLIBC_2.2.5)
SYMBOL(dlclose, GLIBC_2.2.5)
SYMBOL(dlerror, GLIBC_2.2.5)
SYMBOL(dlopen, GLIBC_2.2.5)
SYMBOL(dlsym, GLIBC_2.2.5)
