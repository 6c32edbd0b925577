/* The driver as a test program sees it: found by name as frameworks find it, one pointer for each function used.
 *
 * Nothing here depends on whether a library meters the program or which driver answers.
 */
#pragma once

#include "driver/cuda_calls.h"

#include <stdbool.h>

typedef uint64_t u64;

#define MIB (1ull << 20)

extern struct driver {
#define CALL(name) __typeof__(name) *name;
#include "calls.def"
#undef CALL
} driver;

/* Finds all of the above in a library, by name or path; mostly in libcuda.so.1. */
void calls_find_in(const char *library);
void calls_find(void);

/* A library's symbol by that name; the program exits if it is missing. */
void *found(void *library, const char *name);

/* A number from the command line, at most `most`. */
u64 number(const char *word, u64 most);

/* Finds all of the above, and makes the first card's primary context current, which it returns. */
CUcontext open_card(void);

/* A kernel in the current context that runs as long as its parameter says, a launch of it, and a stream for it. */
CUfunction kernel_here(void);
CUresult launch_for(CUfunction kernel, CUstream stream, u64 ns);
CUstream new_stream(unsigned flags);

/* How many pieces of so many bytes can be had at once; all are freed again. */
unsigned pieces_of(u64 bytes);

/* A call that must succeed: otherwise the program exits with a line on stderr. */
#define NEED(name, ...) require(driver.name(__VA_ARGS__), #name)
void require(CUresult result, const char *what);
void stop_with(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
