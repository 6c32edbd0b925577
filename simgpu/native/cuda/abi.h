/* The driver API as programs see it: numbers, handles and structures that libcuda's callers pass. Interface facts only.
 *
 * Handles are our own objects by their address. Memory's structures stand in abi_memory.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An exported function: declares it, and opens its definition. */
#define CALL(name, ...)                                                                                                \
    __attribute__((visibility("default"))) CUresult name(__VA_ARGS__);                                                 \
    CUresult name(__VA_ARGS__)

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_MAP_FAILED = 205,
    CUDA_ERROR_UNMAP_FAILED = 206,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NOT_MAPPED = 211,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_FILE_NOT_FOUND = 301,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_TIMEOUT = 909,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct image *CUmodule, *CUlibrary; /* a library is a module that belongs to no context */
typedef struct function *CUfunction, *CUkernel; /* programs pass the one for the other */
typedef struct graph *CUgraph;
typedef struct node *CUgraphNode;
typedef struct executable *CUgraphExec;

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

typedef struct {
    char bytes[16];
} CUuuid;

/* Handles that mean default streams. NULL: one of the two, as the function's variant says. */
#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2, CU_EVENT_INTERPROCESS = 4 };
enum { CU_CTX_SCHED_BLOCKING_SYNC = 4, CU_CTX_SCHED_MASK = 7, CU_CTX_FLAGS_MASK = 0xff };

typedef enum { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED } CUstreamCaptureMode;
typedef enum { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED } CUstreamCaptureStatus;

typedef struct {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

/* A launch's shape, as every structure below begins: 28 bytes. */
struct shape {
    unsigned grid[3], block[3], shared_bytes;
};

typedef struct {
    uint32_t id;
    char pad[4];
    char value[64];
} CUlaunchAttribute;

typedef struct {
    struct shape shape;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    struct shape shape;
    CUstream stream;
    void **params;
} CUDA_LAUNCH_PARAMS;

/* The second version of the parameters; the first one ends before `kernel`. */
typedef struct {
    CUfunction function;
    struct shape shape;
    void **params, **extra;
    CUkernel kernel;
    CUcontext context;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    CUhostFn call;
    void *data;
} CUDA_HOST_NODE_PARAMS;

/* Whose the graph of a child node is from then on. */
enum { CU_GRAPH_CHILD_MOVED = 1 };

/* A node of any kind. Those of memory are here by size; their structures are in abi_memory.h. */
typedef struct {
    int type;
    int reserved[3];
    union {
        long long words[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        struct {
            int flags, reserved;
            CUcontext context;
            long long copy[25];
        } memcpy;
        struct {
            long long set[5];
            CUcontext context;
        } memset;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUgraph graph;
            int ownership;
        } child;
        CUevent event;
    };
    long long reserved2;
} CUgraphNodeParams;

typedef struct {
    unsigned long long flags;
    CUstream upload;
    CUgraphNode failed;
    int result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
    int result;
    CUgraphNode failed, failed_from;
} CUgraphExecUpdateResultInfo;

_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "layout");
_Static_assert(sizeof(CUDA_LAUNCH_PARAMS) == 56 && offsetof(CUDA_LAUNCH_PARAMS, stream) == 40, "layout");
_Static_assert(sizeof(CUgraphNodeParams) == 256 && sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "layout");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "layout");
