#include "calls.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

void calls_find(void) { calls_find_in("libcuda.so.1"); }
