/* The names that are declared but not simulated: a program finds them, and is told so. */
#include "abi.h"

CUresult absent(void);
CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define REAL(name)
#define ABSENT(name) __attribute__((visibility("default"), weak, alias("absent"))) CUresult name(void);

#include "names.def"
