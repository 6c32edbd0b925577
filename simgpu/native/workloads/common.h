/* What the workloads share: finding the driver as frameworks do, options, marks in time, and one line of JSON at the
 * end.
 *
 * A workload is one file with a `program`; `main` is in common.c. It is a user's program: it knows nothing of the
 * simulation but the names of its kernels, and finds libcuda.so.1 by that name alone.
 */
#pragma once

#include "driver/cuda_calls.h"

#include <stdbool.h>

typedef uint64_t u64;

/* A call of the driver. Its function is looked up at the first call; a driver that lacks it ends the program. */
#define CU(name, ...)                                                                                                  \
    ({                                                                                                                 \
        static __typeof__(name) *function;                                                                             \
        if (!function) function = (__typeof__(name) *)driver_symbol(#name);                                            \
        function(__VA_ARGS__);                                                                                         \
    })
void *driver_symbol(const char *name);

/* A call that must succeed: the program ends with its line and the error otherwise. */
#define NEED(name, ...) require(CU(name, __VA_ARGS__), #name)

struct options {
    double seconds;  /* 0: until `count` */
    u64 count;       /* 0: until `seconds` */
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
    const char *own_options;  /* names with a space between them, besides seconds, count, kernel-us and card */
    struct options defaults;
    void (*run)(const struct options *options);
};

extern const struct program program;

/* What came out: the program writes it while it goes, so that an error finds what was reached. */
struct outcome {
    u64 launches;
    double gpu_seconds;   /* of the card's time that this process received */
    double wall_seconds;  /* in which it received them */
};
extern struct outcome outcome;

/* Adds members to the line of JSON, each with a comma before it. */
void also(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with the line and an error, unless all is well. */
void require(CUresult result, const char *what);
void stop_with(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Where an error goes instead of the line, in a process that is only a part of the workload. */
extern void (*stopping)(const char *error);

/* Prints the line. `main` does so when `run` returns. */
void tell(void);

/* Makes this thread's context the primary one of a card. */
void open_card(u64 card);

/* A stream, and the kernel that runs as long as its first parameter says. */
struct work {
    CUstream stream;
    CUfunction kernel;
    u64 duration_ns; /* as the options say */
};

/* Opens the card. The kernel's module is loaded, by a launch that does not count. */
struct work work_begin(const struct options *options);
void launch(const struct work *work, u64 duration_ns);

u64 next_random(u64 *state);
double now_s(void);
void sleep_until(double when_s);
double cpu_s(void); /* of this thread */

/* Whether to go on after `done` rounds that began at `start`. */
bool goes_on(const struct options *options, u64 done, double start);

/* Marks: where a stream is. What was received between two marks that have been reached, and in what time, does not
 * depend on how much is queued behind them. */
struct marks;
struct marks *marks_new(CUstream stream);
void marks_begin(struct marks *marks);
void mark(struct marks *marks, u64 launches);
/* The launches before the latest mark that is reached by now; its time since they began. */
u64 marks_reached(struct marks *marks, double *wall_s);
