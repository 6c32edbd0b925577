/* The names that NVML has and this library does not, and a proof for the linker that it has all the others. */
#include "library.h"

#define REAL(name)
#define ABSENT(name)                                                                                                   \
    NVML(name, void) {                                                                                                 \
        CALL;                                                                                                          \
        return NVML_NOT_SUPPORTED;                                                                                     \
    }
#include "names.def"
#undef REAL
#undef ABSENT
