/* Memory and formatted strings. Allocation succeeds or the program exits, since it is short-lived and has no other
 * work. Small allocations are not freed. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *checked(void *memory) {
    if (memory) return memory;
    fputs("partage: there is no memory left\n", stderr);
    exit(EXIT_FAILURE);
}

static inline void *allocate(size_t bytes) { return checked(malloc(bytes)); }
static inline void *reallocate(void *old, size_t bytes) { return checked(realloc(old, bytes)); }

__attribute__((format(printf, 1, 2))) static inline char *formatted(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    return checked(text);
}
