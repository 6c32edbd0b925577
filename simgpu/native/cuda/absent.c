/* Every name that the driver exports. The other files define those that are simulated; all others exist and return
 * NOT_SUPPORTED. */
#include "driver.h"

CUresult absent(void);
CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define NAME(name) __attribute__((visibility("default"), weak, alias("absent"))) CUresult name(void);
#include "driver/cuda.def"
