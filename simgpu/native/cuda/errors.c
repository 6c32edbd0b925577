/* Names of results. */
#include "driver.h"

static const struct {
    const char *name;
    int value;
    const char *words;
} errors[] = {
#define ERROR(name, value, words) {#name, value, words},
#include "driver/cuda_errors.def"
};

enum { ERRORS = sizeof errors / sizeof *errors };

static int place_of(int error) {
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].value == error) return i;
    return -1;
}

CALL(cuGetErrorName, CUresult error, const char **text) {
    int place = place_of((int)error);
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = place < 0 ? NULL : errors[place].name;
    return place < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CALL(cuGetErrorString, CUresult error, const char **text) {
    int place = place_of((int)error);
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = place < 0 ? NULL : errors[place].words;
    return place < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
