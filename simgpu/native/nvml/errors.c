/* Texts of NVML's results. */
#include "library.h"

__attribute__((visibility("default"))) const char *nvmlErrorString(nvml_result result);

const char *nvmlErrorString(nvml_result result) {
    switch (result) {
#define ERROR(name, value, words)                                                                                      \
    case value: return words;
#include "driver/nvml_errors.def"
    default: return "Unknown Error";
    }
}
