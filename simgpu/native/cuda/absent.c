/* Every name that the driver exports. Files beside this one define those that are simulated; all others are found, and
 * answer that they are not supported. */
#include "driver.h"

CUresult absent(void);
CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define NAME(name) __attribute__((visibility("default"), weak, alias("absent"))) CUresult name(void);
#include "driver/cuda.def"
