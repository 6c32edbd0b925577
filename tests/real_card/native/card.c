#include "card.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Compute capability 7.5 is the lowest that drivers of CUDA 13 support; they compile this for the card at hand. Nothing
 * is ever stored: the comparison keeps the multiplications from being optimised away. */
static const char image[] = ".version 6.3\n"
                            ".target sm_75\n"
                            ".address_size 64\n"
                            ".visible .entry sim_arg(.param .u64 nanoseconds, .param .u64 rounds)\n"
                            "{\n"
                            "    .reg .pred %more;\n"
                            "    .reg .u64 %span, %left, %begin, %now, %value, %nowhere;\n"
                            "    ld.param.u64 %span, [nanoseconds];\n"
                            "    ld.param.u64 %left, [rounds];\n"
                            "    mov.u64 %begin, %globaltimer;\n"
                            "    mov.u64 %value, %begin;\n"
                            "    mov.u64 %nowhere, 0;\n"
                            "    setp.ne.u64 %more, %left, 0;\n"
                            "    @%more bra work;\n"
                            "spin:\n"
                            "    mov.u64 %now, %globaltimer;\n"
                            "    sub.u64 %now, %now, %begin;\n"
                            "    setp.lt.u64 %more, %now, %span;\n"
                            "    @%more bra spin;\n"
                            "    ret;\n"
                            "work:\n"
                            "    mad.lo.u64 %value, %value, 6364136223846793005, 1442695040888963407;\n"
                            "    sub.u64 %left, %left, 1;\n"
                            "    setp.ne.u64 %more, %left, 0;\n"
                            "    @%more bra work;\n"
                            "    setp.eq.u64 %more, %value, 1;\n"
                            "    @%more st.global.u64 [%nowhere], %value;\n"
                            "    ret;\n"
                            "}\n";

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

void *symbol_in(const char *path, const char *name) {
    void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) stop_with("%s", dlerror());
    return found;
}

void *driver_symbol(const char *name) { return symbol_in(NULL, name); }

void open_card(const char *path) {
    CUcontext context;
    NEED(cuInit, 0);
    require(((__typeof__(cuDevicePrimaryCtxRetain) *)symbol_in(path, "cuDevicePrimaryCtxRetain"))(&context, 0),
            "cuDevicePrimaryCtxRetain");
    require(((__typeof__(cuCtxSetCurrent) *)symbol_in(path, "cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
}

struct kernel kernel_of(u64 ns, u64 rounds) {
    struct kernel kernel = {.ns = 0, .rounds = 1};
    CUmodule module;
    NEED(cuModuleLoadData, &module, image);
    NEED(cuModuleGetFunction, &kernel.function, module, "sim_arg");
    require(launch(&kernel, NULL), "the first launch"); /* it loads the code */
    NEED(cuCtxSynchronize);
    kernel.ns = ns, kernel.rounds = rounds;
    return kernel;
}

CUresult launch(const struct kernel *kernel, CUstream stream) {
    static __typeof__(cuLaunchKernel) *function;
    if (!function) function = (__typeof__(cuLaunchKernel) *)driver_symbol("cuLaunchKernel");
    return function(kernel->function, 1, 1, 1, 32, 1, 1, 0, stream, PARAMETERS(kernel), NULL);
}

static double clock_s(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double now_s(void) { return clock_s(CLOCK_MONOTONIC); }

double own_cpu_s(void) { return clock_s(CLOCK_THREAD_CPUTIME_ID); }
