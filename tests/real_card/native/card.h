/* Shared by both programs: the driver by name, a context, and a kernel of known work. */
#pragma once

#include "driver/cuda_calls.h"

#include <stdbool.h>

typedef uint64_t u64;

#define NEED(name, ...) require(((__typeof__(name) *)driver_symbol(#name))(__VA_ARGS__), #name)

void stop_with(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void require(CUresult result, const char *what);

/* From the library that programs get by the driver's name. */
void *driver_symbol(const char *name);

/* From the file with this path; NULL: the same library as above. */
void *symbol_in(const char *path, const char *name);

/* The primary context of card 0, current; made by the library at that path. */
void open_card(const char *path);

/* The kernel does `rounds` dependent multiplications, or with none spins for `ns` by the card's clock. The work is the
 * same however the card is shared; a spin ends early for a process that had to wait. The simulated card goes by
 * `ns`. */
struct kernel {
    CUfunction function;
    u64 ns, rounds;
};
struct kernel kernel_of(u64 ns, u64 rounds);

/* The parameters of a launch, as the driver takes them. */
#define PARAMETERS(kernel) ((void *[]){(void *)&(kernel)->ns, (void *)&(kernel)->rounds})

CUresult launch(const struct kernel *kernel, CUstream stream);

double now_s(void);
double own_cpu_s(void); /* of this thread */
