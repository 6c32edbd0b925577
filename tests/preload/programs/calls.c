#include "calls.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PIECES = 4096 };

struct driver driver;

void stop_with(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void require(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) stop_with("%s answered %d", what, result);
}

void *found(void *library, const char *name) {
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) stop_with("%s", dlerror());
    return function;
}

void calls_find_in(const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
#define CALL(name) driver.name = (__typeof__(name) *)found(library, #name);
#include "calls.def"
#undef CALL
}

u64 number(const char *word, u64 most) {
    const u64 value = strtoull(word, NULL, 10);
    if (!value || value > most) stop_with("%s is no number up to %llu", word, (unsigned long long)most);
    return value;
}

CUcontext open_card(void) {
    CUcontext context;
    calls_find();
    NEED(cuInit, 0);
    NEED(cuDevicePrimaryCtxRetain, &context, 0);
    NEED(cuCtxSetCurrent, context);
    return context;
}

CUfunction kernel_here(void) {
    CUmodule module;
    CUfunction kernel;
    NEED(cuModuleLoadData, &module, "anything");
    NEED(cuModuleGetFunction, &kernel, module, "sim_arg");
    return kernel;
}

CUresult launch_for(CUfunction kernel, CUstream stream, u64 ns) {
    void *parameters[] = {&ns};
    return driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

CUstream new_stream(unsigned flags) {
    CUstream stream;
    NEED(cuStreamCreate, &stream, flags);
    return stream;
}

unsigned pieces_of(u64 bytes) {
    static CUdeviceptr address[MOST_PIECES];
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;
    while (count < MOST_PIECES && (result = driver.cuMemAlloc_v2(&address[count], bytes)) == CUDA_SUCCESS) count++;
    if (result != CUDA_ERROR_OUT_OF_MEMORY) require(result, "cuMemAlloc");
    for (unsigned i = 0; i < count; i++) NEED(cuMemFree_v2, address[i]);
    return count;
}

void calls_find(void) { calls_find_in("libcuda.so.1"); }
