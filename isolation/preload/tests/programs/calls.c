#include "calls.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFINE(name, symbol, parameters) int(*name) parameters;
DRIVER_FUNCTIONS(DEFINE)
#undef DEFINE

void stop_with(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void require(int result, const char *what) {
    if (result != SUCCESS) stop_with("%s answered %d", what, result);
}

void calls_find(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) stop_with("%s", dlerror());
#define FIND(name, symbol, parameters)                                                                                 \
    if (!(name = (int(*) parameters)dlsym(library, #symbol))) stop_with("the driver has no %s", #symbol);
    DRIVER_FUNCTIONS(FIND)
#undef FIND
}
