/* Every name that the library exports. Files beside this one define those that are simulated; all others are found, and
 * answer that they are not supported. */
#include "library.h"

nvml_result absent(void);
nvml_result absent(void) {
    CALL;
    return NVML_NOT_SUPPORTED;
}

#define NAME(name) __attribute__((visibility("default"), weak, alias("absent"))) nvml_result name(void);
#include "driver/nvml.def"
