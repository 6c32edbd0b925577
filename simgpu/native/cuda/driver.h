/* The objects of libcuda, and the interfaces between its files.
 *
 * devices.c   the cards that this process may use        current.c   the current context of each thread
 * streams.c   order and time of work                     capture.c   work that is captured instead of executed
 * memory.c    pieces of a card and their addresses       …           see README.md
 *
 * One lock, `driver_lock`, guards every table of objects here; it is never held while waiting for time to pass or
 * for a callback. The timeline (timeline.h) has no lock but needs one thread at a time: `device_advance` ensures that.
 */
#pragma once

#include "../common/connection.h"
#include "driver/cuda_abi.h"
#include "ticks.h"

#include <pthread.h>

/* Declares an exported function and opens its definition. */
#define CALL(name, ...)                                                                                                \
    __attribute__((visibility("default"))) CUresult name(__VA_ARGS__);                                                 \
    CUresult name(__VA_ARGS__)

/* A function in two forms. NULL means the legacy stream in the plain form, and the thread's own stream in the one with
 * the suffix; `per_thread` in `answer` distinguishes them. */
#define CALL_TWICE(name, suffix, answer, ...)                                                                          \
    CALL(name, __VA_ARGS__) {                                                                                          \
        enum { per_thread = false };                                                                                   \
        return answer;                                                                                                 \
    }                                                                                                                  \
    CALL(name##suffix, __VA_ARGS__) {                                                                                  \
        enum { per_thread = true };                                                                                    \
        return answer;                                                                                                 \
    }

/* Returns from the function on any error. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const CUresult try_result = (call);                                                                            \
        if (try_result != CUDA_SUCCESS) return try_result;                                                             \
    } while (0)

/* Removes an element from a list linked by its member `link`, if present. */
#define UNLINK(list, element, link)                                                                                    \
    do {                                                                                                               \
        __typeof__(list) *place = &(list);                                                                             \
        while (*place && *place != (element)) place = &(*place)->link;                                                 \
        if (*place) *place = (element)->link;                                                                          \
    } while (0)

/* Holds a mutex to the end of the block. */
#define HOLD(mutex) __attribute__((cleanup(mutex_release), unused)) pthread_mutex_t *const held = mutex_hold(&(mutex))

static inline pthread_mutex_t *mutex_hold(pthread_mutex_t *mutex) {
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void mutex_release(pthread_mutex_t *const *mutex) { pthread_mutex_unlock(*mutex); }

struct cuda_context;
struct cuda_stream;
struct growth;

struct device {
    int ordinal;                       /* the program's device number */
    u32 card;                          /* index in the node file */
    const struct sim_card *about;
    struct sim_timeline *line;
    int row;                           /* this process's row on that card; -1 without a context */
    u32 contexts;                      /* existing contexts of this process */
    struct cuda_context *primary;
    pthread_mutex_t advancing;         /* guards the following fields, except for single reads */
    _Atomic u64 received;              /* latest known local time */
    _Atomic u64 lag; /* wall time minus `received` at that moment: at `now` at most now - lag is received */
    struct ticks ticks;
    _Atomic u32 stuck;                 /* value last read from the node file */
    u64 looked_at;                     /* wall time of the last check that simgpud is alive */
    struct cuda_event *timing, *timing_last; /* recorded events with unknown wall time, earliest first */
    struct after *after;               /* actions scheduled for a time */
};

/* Bytes of local memory per thread included in a context's memory: the initial value of the stack limit. A guess. */
enum { CONTEXT_LIMITS = 7, LOCALS_AT_FIRST = 1024 };

struct cuda_context {
    u32 magic;
    struct device *device;
    bool is_primary;
    u32 flags;
    _Atomic u32 references; /* 0: destroyed, or an unretained primary context */
    struct cuda_stream *legacy; /* the default stream; per-thread ones belong to the threads */
    struct cuda_stream *streams; /* all, including the legacy one */
    _Atomic u64 blocking_tail; /* maximum end of work in streams that the legacy one waits for */
    _Atomic u64 dropped_tail; /* maximum end of work in destroyed streams */
    _Atomic u32 blocking_held; /* number of these streams that hold work back; see held.c */
    _Atomic u32 blocking_captures; /* number of these streams that capture */
    u64 id;
    size_t limits[CONTEXT_LIMITS]; /* 0: the driver's default */
    _Atomic u64 locals; /* bytes of local memory available per thread of the device */
    struct growth *grown; /* its memory besides programs' allocations */
    struct cuda_context *next;
};

extern pthread_mutex_t driver_lock;

/* ---- devices.c, current.c: used first by everything ------------------------------------------------------------ */

/* CUDA_SUCCESS once cuInit was called and the node is available; otherwise the error that every function must
 * return. */
CUresult driver_ready(void);

struct sim_node *driver_node(void);

/* Translates a result of simgpud for the program. */
CUresult driver_result(int sim_result);

/* The driver's CUDA version: 13000. Callable at any time. */
u32 driver_version(void);

/* simgpud is gone: every call fails from now on. */
void driver_lost(void);

/* The device of this ordinal, or CUDA_ERROR_INVALID_DEVICE. */
CUresult device_of(CUdevice ordinal, struct device **found);

/* The device of a memory location. Each device is a single locality domain here. */
CUresult location_device(const CUmemLocation *location, struct device **device);

/* The calling thread's context: CUDA_SUCCESS; CUDA_ERROR_INVALID_CONTEXT if there is none; the sticky error of a
 * process whose card failed. On the hot path of every function that works in a context. */
CUresult context_current(struct cuda_context **found);

/* The context of a handle; NULL means the current one. */
CUresult context_of(CUcontext handle, struct cuda_context **found);

/* The injected or sticky error of the card or of this process's row; normally CUDA_SUCCESS. */
CUresult device_fault(const struct device *device);

/* A kernel touches all managed memory of this process: the time that it waits until everything that fits is on the
 * device. */
CUresult managed_faults(const struct device *device, u64 *duration_ns);

/* Whether the kernel launched now was made to never end; a call consumes the request. */
bool device_sticks(struct device *device);

/* ---- streams.c: order and time ---------------------------------------------------------------------------------- */

/* The stream of a handle in the current context. `per_thread`: the function is a _ptsz/_ptds form, so 0 means the
 * thread's own default stream. */
CUresult stream_of(CUstream handle, bool per_thread, struct cuda_stream **found);

struct device *stream_device(const struct cuda_stream *stream);

/* Adds work of `duration_ns` after everything that it must wait for; *end (may be NULL) is its end in local time.
 * Blocks while the queue is full and, if `end` is requested, while the stream waits for the host (a callback or a
 * value). Not for capturing streams. */
CUresult stream_enqueue(struct cuda_stream *stream, u64 duration_ns, u64 *end);

/* Waits until local time `end` is received, or the device fails. */
CUresult device_wait(struct device *device, u64 end);

/* Advances the device to the current time and stores what was received. */
void device_advance(struct device *device);

/* Waits for all work of the stream, for synchronous calls. */
CUresult stream_finish(struct cuda_stream *stream);

/* Runs `action(argument)` once the work now in `stream` has ended, at the latest when a thread next synchronizes; for
 * resources that must not be returned earlier, such as memory freed in stream order. */
CUresult stream_after(struct cuda_stream *stream, void (*action)(void *argument), void *argument);

/* ---- capture.c: while a stream captures ------------------------------------------------------------------------- */

bool stream_capturing(const struct cuda_stream *stream);

/* Called first by every asynchronous function that adds work: CUDA_SUCCESS and whether the work is to be captured
 * (*capturing) or executed; otherwise the error: the capture is invalid, or the legacy stream would join one. */
CUresult stream_begin(struct cuda_stream *stream, bool *capturing);

/* CUDA_SUCCESS, or CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (and the captures are invalidated) for a call that the
 * thread's capture mode forbids: cudaMalloc, synchronous copies and the like. */
CUresult capture_forbids_unsafe(void);

enum node_kind {
    NODE_KERNEL = 0,
    NODE_MEMCPY = 1,
    NODE_MEMSET = 2,
    NODE_HOST = 3,
    NODE_CHILD = 4,
    NODE_EMPTY = 5,
    NODE_WAIT_EVENT = 6,
    NODE_RECORD_EVENT = 7,
    NODE_ALLOC = 10,
    NODE_FREE = 11
};

/* Work of a graph: takes `duration_ns`; when the graph is launched `run(argument)`, if any, performs its real effects
 * (copies bytes, takes memory). `drop(argument)`, if any, frees the argument with the last graph that has it. */
struct work {
    enum node_kind kind;
    u64 duration_ns;
    CUresult (*run)(void *argument);
    void (*drop)(void *argument);
    void *argument;
    const CUDA_MEM_ALLOC_NODE_PARAMS *allocates; /* NODE_ALLOC: its parameters, for queries; copied during capture */
};

/* Captures work of a capturing stream. */
CUresult capture_add(struct cuda_stream *stream, const struct work *work);

/* ---- memory.c and related files, as used by the time side -------------------------------------------------------- */

/* The data of the device's bytes at `address`, accessible to the host; *length is how many follow there. NULL for
 * memory that has no data (large) or is not this process's. */
void *memory_data(CUdeviceptr address, size_t *length);

/* Frees everything that the process holds of this device; its last context was destroyed. */
void memory_context_gone(struct cuda_context *context);

/* Takes bytes of the device that no program requested; 0 bytes make no piece. */
CUresult memory_grow(struct device *device, u32 kind, u64 bytes, u64 *piece);
void memory_give_back(u64 piece);

/* ---- growth.c: contexts' memory besides programs' allocations ---------------------------------------------------- */

/* Takes local memory for all threads that the device can run at once, for a kernel that uses that many bytes per
 * thread. It stays from the kernel's first launch to the end of the context. */
CUresult locals_grow(struct cuda_context *context, u64 bytes);

/* Takes bytes until growth_drop, or the end of the context, which sets *holder to NULL. */
CUresult growth_new(struct cuda_context *context, u32 kind, u64 bytes, struct growth **holder);
void growth_drop(struct growth **holder);

/* Releases all of a context's growth. */
void growth_context_gone(struct cuda_context *context);

/* The work of a memset node; `set` is a CUDA_MEMSET_NODE_PARAMS, of which the work copies what it needs. */
CUresult memory_set_work(struct cuda_context *context, const void *set, struct work *work);

/* Sets the address in `params`. Nothing is taken before the work runs. */
CUresult memory_alloc_work(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *work);
CUresult memory_free_work(CUdeviceptr address, struct work *work);
