/* What the workloads share: finding the driver as frameworks do, options, marks in time, and one line of JSON at the
 * end.
 *
 * A workload is one file with a `program`; `main` is in common.c. It is a user's program: it knows nothing of the
 * simulation but the names of its kernels, and finds libcuda.so.1 by that name alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;
typedef void *handle; /* any of the driver's opaque pointers */

enum { CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_READY = 600 };

/* Where physical memory is, and of what kind: the fields that we set, in a struct of the driver's size. */
struct memory_properties {
    int type, handle_types;
    struct {
        int type, id;
    } location;
    void *windows;
    unsigned char flags[8];
};

struct memory_access {
    struct {
        int type, id;
    } location;
    int flags;
};

struct array_description {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

/* X(name that we call, symbol, parameters): every function that a workload calls. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(cuInit, cuInit, (unsigned flags))                                                                                \
    X(cuGetErrorName, cuGetErrorName, (int result, const char **name))                                                 \
    X(cuDeviceGet, cuDeviceGet, (int *device, int ordinal))                                                            \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (handle * context, int device))                              \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (handle context))                                                              \
    X(cuCtxSynchronize, cuCtxSynchronize, (void))                                                                      \
    X(cuModuleLoadData, cuModuleLoadData, (handle * module, const void *image))                                        \
    X(cuModuleGetFunction, cuModuleGetFunction, (handle * function, handle module, const char *name))                  \
    X(cuLaunchKernel, cuLaunchKernel,                                                                                  \
      (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
       handle stream, void **parameters, void **extra))                                                                \
    X(cuStreamCreate, cuStreamCreate, (handle * stream, unsigned flags))                                               \
    X(cuStreamSynchronize, cuStreamSynchronize, (handle stream))                                                       \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (handle stream, int mode))                                        \
    X(cuStreamEndCapture, cuStreamEndCapture, (handle stream, handle * graph))                                         \
    X(cuGraphInstantiate, cuGraphInstantiateWithFlags, (handle * executable, handle graph, unsigned long long flags))  \
    X(cuGraphLaunch, cuGraphLaunch, (handle executable, handle stream))                                                \
    X(cuEventCreate, cuEventCreate, (handle * event, unsigned flags))                                                  \
    X(cuEventRecord, cuEventRecord, (handle event, handle stream))                                                     \
    X(cuEventQuery, cuEventQuery, (handle event))                                                                      \
    X(cuEventSynchronize, cuEventSynchronize, (handle event))                                                          \
    X(cuEventElapsedTime, cuEventElapsedTime, (float *ms, handle from, handle to))                                     \
    X(cuMemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                    \
    X(cuMemAlloc, cuMemAlloc_v2, (u64 * address, size_t bytes))                                                        \
    X(cuMemAllocPitch, cuMemAllocPitch_v2,                                                                             \
      (u64 * address, size_t *pitch, size_t width, size_t height, unsigned element))                                   \
    X(cuMemAllocManaged, cuMemAllocManaged, (u64 * address, size_t bytes, unsigned flags))                             \
    X(cuMemFree, cuMemFree_v2, (u64 address))                                                                          \
    X(cuMemAllocAsync, cuMemAllocAsync, (u64 * address, size_t bytes, handle stream))                                  \
    X(cuMemFreeAsync, cuMemFreeAsync, (u64 address, handle stream))                                                    \
    X(cuDeviceGetMemPool, cuDeviceGetMemPool, (handle * pool, int device))                                             \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, (handle pool, size_t keep))                                                    \
    X(cuArray3DCreate, cuArray3DCreate_v2, (handle * array, const struct array_description *description))              \
    X(cuArrayDestroy, cuArrayDestroy, (handle array))                                                                  \
    X(cuMemCreate, cuMemCreate,                                                                                        \
      (u64 * memory, size_t bytes, const struct memory_properties *properties, unsigned long long flags))              \
    X(cuMemRelease, cuMemRelease, (u64 memory))                                                                        \
    X(cuMemAddressReserve, cuMemAddressReserve,                                                                        \
      (u64 * address, size_t bytes, size_t alignment, u64 wish, unsigned long long flags))                             \
    X(cuMemAddressFree, cuMemAddressFree, (u64 address, size_t bytes))                                                 \
    X(cuMemMap, cuMemMap, (u64 address, size_t bytes, size_t offset, u64 memory, unsigned long long flags))            \
    X(cuMemUnmap, cuMemUnmap, (u64 address, size_t bytes))                                                             \
    X(cuMemSetAccess, cuMemSetAccess, (u64 address, size_t bytes, const struct memory_access *access, size_t count))

#define DECLARE(name, symbol, parameters) extern int(*name) parameters;
DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE

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
void require(int result, const char *what);
void stop_with(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Where an error goes instead of the line, in a process that is only a part of the workload. */
extern void (*stopping)(const char *error);

/* Prints the line. `main` does so when `run` returns. */
void tell(void);

/* Loads the driver, and makes this thread's context the primary one of a card. */
void open_card(u64 card);

/* The kernel that runs as long as its first parameter says, in nanoseconds. */
handle timed_kernel(void);
void launch(handle kernel, u64 duration_ns, handle stream);

handle new_stream(void);
double now_s(void);
void sleep_until(double when_s);
double cpu_s(void); /* of this thread */

/* Whether to go on after `done` rounds that began at `start`. */
bool goes_on(const struct options *options, u64 done, double start);

/* Marks: where a stream is. What was received between two marks that have been reached, and in what time, does not
 * depend on how much is queued behind them. */
struct marks;
struct marks *marks_new(handle stream);
void marks_begin(struct marks *marks);
void mark(struct marks *marks, u64 launches);
/* The launches before the latest mark that is reached by now; its time since they began. */
u64 marks_reached(struct marks *marks, double *wall_s);
