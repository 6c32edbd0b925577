/* Common parts of the workloads: loading the driver as frameworks do, options, marks in time, and one line of JSON at
 * the end.
 *
 * A workload is one file with a `program`; `main` is in common.c. It represents a user's program: it knows nothing of
 * the simulation except its kernel names, and loads libcuda.so.1 by that name only.
 */
#pragma once

#include "driver/cuda_calls.h"

#include <stdbool.h>

typedef uint64_t u64;

/* A driver call. The function is looked up at the first call; if the driver lacks it, the program ends. */
#define CU(name, ...)                                                                                                  \
    ({                                                                                                                 \
        static __typeof__(name) *function;                                                                             \
        if (!function) function = (__typeof__(name) *)driver_symbol(#name);                                            \
        function(__VA_ARGS__);                                                                                         \
    })
void *driver_symbol(const char *name);

/* A call that must succeed: on failure the program ends with its line and the error. */
#define NEED(name, ...) require(CU(name, __VA_ARGS__), #name)

struct options {
    double seconds;  /* 0: run until `count` */
    u64 count;       /* 0: run until `seconds` */
    double kernel_us;
    u64 card;
    u64 processes;
    double rate;
    u64 kernels;
    u64 mib;
    const char *kind;
    u64 seed;
    u64 rank;
    const char *at;
};

struct program {
    const char *name, *summary;
    const char *own_options;  /* names separated by a space, in addition to seconds, count, kernel-us and card */
    struct options defaults;
    void (*run)(const struct options *options);
};

extern const struct program program;

/* Results: the program updates them as it runs, so that they are valid when it ends with an error. */
struct outcome {
    u64 launches;
    double gpu_seconds;   /* of the card's time received by this process */
    double wall_seconds;  /* during which it received them */
};
extern struct outcome outcome;

/* Appends members to the line of JSON, each preceded by a comma. */
void also(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with the line and an error, unless `result` is success. */
void require(CUresult result, const char *what);
void stop_with(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Receives errors in place of the line, in a process that is only one part of the workload. */
extern void (*stopping)(const char *error);

/* Prints the line. `main` calls it when `run` returns. */
void tell(void);

/* Makes the card's primary context current in this thread. */
void open_card(u64 card);

/* A stream, and the kernel that runs for the duration given by its first parameter. */
struct work {
    CUstream stream;
    CUfunction kernel;
    u64 duration_ns; /* from the options */
};

/* Opens the card. An uncounted launch loads the kernel's module. */
struct work work_begin(const struct options *options);
void launch(const struct work *work, u64 duration_ns);

u64 next_random(u64 *state);
double now_s(void);
void sleep_until(double when_s);
double cpu_s(void); /* of this thread */

/* Whether to continue after `done` rounds that began at `start`. */
bool goes_on(const struct options *options, u64 done, double start);

/* Marks: progress of a stream. The time received between two marks that have been reached, and its duration, do not
 * depend on how much is queued behind them. */
struct marks;
struct marks *marks_new(CUstream stream);
void marks_begin(struct marks *marks);
void mark(struct marks *marks, u64 launches);
/* The launches before the latest mark reached so far; *wall_s: their duration. */
u64 marks_reached(struct marks *marks, double *wall_s);
