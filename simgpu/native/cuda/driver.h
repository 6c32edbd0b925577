/* The objects inside libcuda and what its files ask of each other.
 *
 * devices.c   the cards that this process may use        current.c   whose memory and streams are meant
 * streams.c   order and time of work                     capture.c   work that is written down instead of done
 * memory.c    pieces of a card and their addresses       …           see README.md
 *
 * One lock, `driver_lock`, guards every table of objects here; it is never held while waiting for time to pass or
 * for a callback. Time itself (timeline.h) has no lock but needs one thread at a time: `device_advance` sees to it.
 */
#pragma once

#include "../common/connection.h"
#include "driver/cuda_abi.h"
#include "ticks.h"

#include <pthread.h>

/* An exported function: declares it, and opens its definition. */
#define CALL(name, ...)                                                                                                \
    __attribute__((visibility("default"))) CUresult name(__VA_ARGS__);                                                 \
    CUresult name(__VA_ARGS__)

/* A function that there is twice. 0 is the legacy stream, and for the one with the suffix the thread's own: so says
 * `per_thread` in the answer. */
#define CALL_TWICE(name, suffix, answer, ...)                                                                          \
    CALL(name, __VA_ARGS__) {                                                                                          \
        enum { per_thread = false };                                                                                   \
        return answer;                                                                                                 \
    }                                                                                                                  \
    CALL(name##suffix, __VA_ARGS__) {                                                                                  \
        enum { per_thread = true };                                                                                    \
        return answer;                                                                                                 \
    }

/* Leaves the function with any error. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const CUresult try_result = (call);                                                                            \
        if (try_result != CUDA_SUCCESS) return try_result;                                                             \
    } while (0)

/* Takes an element out of a list that is chained by its member `link`, if it is there. */
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
    int ordinal;                       /* as the program counts */
    u32 card;                          /* index in the node file */
    const struct sim_card *about;
    struct sim_timeline *line;
    int row;                           /* of this process on that card; -1 without a context */
    u32 contexts;                      /* alive, of this process */
    struct cuda_context *primary;
    pthread_mutex_t advancing;         /* guards what follows, but for single reads */
    _Atomic u64 received;              /* latest known local time */
    _Atomic u64 lag; /* wall time minus `received` then: at `now` no more than now - lag is received */
    struct ticks ticks;
    _Atomic u32 stuck;                 /* what the node file last said, see there */
    u64 looked_at;                     /* wall time when simgpud was last seen alive */
    struct cuda_event *timing, *timing_last; /* recorded events whose wall time isn't known yet, earliest first */
    struct after *after;               /* actions that wait for a time */
};

/* Bytes of local memory for each thread that are part of what a context takes: the stack limit's beginning. A guess. */
enum { CONTEXT_LIMITS = 7, LOCALS_AT_FIRST = 1024 };

struct cuda_context {
    u32 magic;
    struct device *device;
    bool is_primary;
    u32 flags;
    _Atomic u32 references; /* 0: destroyed, or a primary one that is not retained */
    struct cuda_stream *legacy; /* the default stream; per-thread ones hang at the threads */
    struct cuda_stream *streams; /* all, the legacy one included */
    _Atomic u64 blocking_tail; /* greatest end of work in streams that the legacy one waits for */
    _Atomic u64 dropped_tail; /* greatest end of work in streams that are destroyed */
    _Atomic u32 blocking_held; /* how many of these streams hold work back; see held.c */
    _Atomic u32 blocking_captures; /* how many of these streams capture */
    u64 id;
    size_t limits[CONTEXT_LIMITS]; /* 0: as the driver begins */
    _Atomic u64 locals; /* bytes of local memory that there are for each thread of the device */
    struct growth *grown; /* what it takes beside what programs allocate */
    struct cuda_context *next;
};

extern pthread_mutex_t driver_lock;

/* ---- devices.c, current.c: used first by everything ------------------------------------------------------------ */

/* CUDA_SUCCESS once cuInit was called and the node is there; else what every function must then answer. */
CUresult driver_ready(void);

struct sim_node *driver_node(void);

/* What a program is told about an answer of simgpud. */
CUresult driver_result(int sim_result);

/* Which CUDA the driver is for: 13000. Any time. */
u32 driver_version(void);

/* simgpud is gone: every call fails from now on. */
void driver_lost(void);

/* The device of this ordinal, or CUDA_ERROR_INVALID_DEVICE. */
CUresult device_of(CUdevice ordinal, struct device **found);

/* The device whose memory a place means. Each device is one locality domain here, which is all of it. */
CUresult location_device(const CUmemLocation *location, struct device **device);

/* The calling thread's context: CUDA_SUCCESS; CUDA_ERROR_INVALID_CONTEXT without one; the sticky error of a process
 * whose card failed. The hot path of every function that works in a context. */
CUresult context_current(struct cuda_context **found);

/* The context that a handle means, NULL the current one. */
CUresult context_of(CUcontext handle, struct cuda_context **found);

/* What a call must answer since the card or this process's row was made to fail; CUDA_SUCCESS as a rule. */
CUresult device_fault(const struct device *device);

/* A kernel touches all managed memory of this process: how long it waits until all that has room is on the device. */
CUresult managed_faults(const struct device *device, u64 *duration_ns);

/* Whether the kernel that is launched now was made one that never ends; asking uses it up. */
bool device_sticks(struct device *device);

/* ---- streams.c: order and time ---------------------------------------------------------------------------------- */

/* The stream that a handle means in the current context. `per_thread`: the function is a _ptsz/_ptds one, so 0 means
 * the thread's own default stream. */
CUresult stream_of(CUstream handle, bool per_thread, struct cuda_stream **found);

struct device *stream_device(const struct cuda_stream *stream);

/* Adds work of `duration_ns` behind everything that it must wait for; *end (may be NULL) is its end in local time.
 * Blocks while the queue is full and, if `end` is asked for, while the stream waits for the host (a callback or a
 * value). Not for capturing streams. */
CUresult stream_enqueue(struct cuda_stream *stream, u64 duration_ns, u64 *end);

/* Waits until local time `end` is received, or the device fails. */
CUresult device_wait(struct device *device, u64 end);

/* Brings the device to now and remembers what was received. */
void device_advance(struct device *device);

/* Waits for all work of the stream, for synchronous calls. */
CUresult stream_finish(struct cuda_stream *stream);

/* Runs `action(argument)` when the work that is now in `stream` has ended, at the latest when a thread next
 * synchronises; for what must not come back before, such as memory freed in stream order. */
CUresult stream_after(struct cuda_stream *stream, void (*action)(void *argument), void *argument);

/* ---- capture.c: while a stream captures ------------------------------------------------------------------------- */

bool stream_capturing(const struct cuda_stream *stream);

/* What every asynchronous call that adds work asks first: CUDA_SUCCESS and whether the work is to be written down
 * (*capturing) or to be done; else the error: the capture is invalid, or the legacy stream would join one. */
CUresult stream_begin(struct cuda_stream *stream, bool *capturing);

/* CUDA_SUCCESS, or CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (and the captures are invalid) for a call that the calling
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

/* Work of a graph: takes `duration_ns`; when the graph is launched `run(argument)`, if any, does what is real about it
 * (copies bytes, takes memory). `drop(argument)`, if any, frees the argument with the last graph that has it. */
struct work {
    enum node_kind kind;
    u64 duration_ns;
    CUresult (*run)(void *argument);
    void (*drop)(void *argument);
    void *argument;
    const CUDA_MEM_ALLOC_NODE_PARAMS *allocates; /* NODE_ALLOC: for who asks; copied while it is written down */
};

/* Writes work down for a capturing stream. */
CUresult capture_add(struct cuda_stream *stream, const struct work *work);

/* ---- memory.c and related files, as used by the time side -------------------------------------------------------- */

/* Bytes of the device at `address` that can really be read or written by the host; *length is how many follow there.
 * NULL for memory that has no data (large) or is not of this process. */
void *memory_data(CUdeviceptr address, size_t *length);

/* Everything that the process holds of this device goes; its last context was destroyed. */
void memory_context_gone(struct cuda_context *context);

/* Takes bytes of the device that no program asked for; 0 bytes are no piece. */
CUresult memory_grow(struct device *device, u32 kind, u64 bytes, u64 *piece);
void memory_give_back(u64 piece);

/* ---- growth.c: contexts' memory besides programs' allocations ---------------------------------------------------- */

/* Local memory of all threads that the device can have at once, for a kernel that uses so many bytes in each. It is
 * there from the kernel's first launch to the end of the context. */
CUresult locals_grow(struct cuda_context *context, u64 bytes);

/* Takes bytes until growth_drop, or the end of the context, which makes *holder NULL. */
CUresult growth_new(struct cuda_context *context, u32 kind, u64 bytes, struct growth **holder);
void growth_drop(struct growth **holder);

/* All goes. */
void growth_context_gone(struct cuda_context *context);

/* The work of a graph node that sets memory; `set` is a CUDA_MEMSET_NODE_PARAMS, of which the work keeps
 * what it needs. */
CUresult memory_set_work(struct cuda_context *context, const void *set, struct work *work);

/* Sets the address in `params`. Nothing is taken before the work runs. */
CUresult memory_alloc_work(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *work);
CUresult memory_free_work(CUdeviceptr address, struct work *work);
