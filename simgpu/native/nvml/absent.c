/* Every name that the library exports. The other files define those that are simulated; all others exist and return
 * NOT_SUPPORTED. */
#include "library.h"

nvml_result absent(void);
nvml_result absent(void) {
    CALL;
    return NVML_NOT_SUPPORTED;
}

#define NAME(name) __attribute__((visibility("default"), weak, alias("absent"))) nvml_result name(void);
#include "driver/nvml.def"
