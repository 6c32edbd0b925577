/* Shared code of the programs: each is a few lines, tries one thing, and prints the result. */
#pragma once

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void *opened(const char *library, int flags) {
    void *handle = dlopen(library, flags);
    if (!handle) printf("%s\n", dlerror()), exit(1);
    return handle;
}

static inline void *found(void *handle, const char *name) {
    void *symbol = dlsym(handle, name);
    if (!symbol) printf("no %s\n", name), exit(1);
    return symbol;
}

/* The file that contains this address. */
static inline const char *place(void *address) {
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fname : "nowhere";
}

/* The driver's version, by the function that a program finds in `handle`. */
static inline int version_in(void *handle) {
    int version = 0, (*ask)(int *version) = (int (*)(int *))found(handle, "cuDriverGetVersion");
    int result = ask(&version);
    return result ? -result : version;
}
