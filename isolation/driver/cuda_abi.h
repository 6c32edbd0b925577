/* The driver API's numbers, handles and structures, as far as our libraries need them. Interface facts in our own
 * words, for 64-bit Linux: names and layouts are those that programs are compiled against, fields are named by their
 * meaning for us.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum {
#define ERROR(name, value, words) name = value,
#include "cuda_errors.def"
    /* Errors of this range mean that a capture is in progress. */
    CUDA_ERROR_CAPTURE_FIRST = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    CUDA_ERROR_CAPTURE_LAST = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct cuda_context *CUcontext;
typedef struct cuda_stream *CUstream;
typedef struct cuda_event *CUevent;
typedef struct cuda_image *CUmodule, *CUlibrary; /* a library is a module that belongs to no context */
typedef struct cuda_function *CUfunction, *CUkernel; /* programs pass either as the other */
typedef struct cuda_green *CUgreenCtx;
typedef struct cuda_resources *CUdevResourceDesc;
typedef struct cuda_graph *CUgraph;
typedef struct cuda_node *CUgraphNode;
typedef struct cuda_executable *CUgraphExec;

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

typedef struct {
    char bytes[16];
} CUuuid;

/* Handles of the default streams. NULL is one of the two, depending on the function's variant. */
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

/* Dimensions of a launch, as in several structures below: 28 bytes. */
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

enum { CU_GRAPH_NODE_TYPE_KERNEL = 0, CU_GRAPH_NODE_TYPE_CHILD = 4, CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10 };
enum { CU_GRAPH_INSTANTIATE_UPLOAD = 2 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

/* Ownership of a child node's graph. */
enum { CU_GRAPH_CHILD_MOVED = 1 };

/* Parameters of a node of any kind. Memory nodes only have their size here; their structures are in abi_memory.h. */
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

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct cuda_array *CUarray;
typedef struct cuda_mipmaps *CUmipmappedArray;
typedef struct cuda_pool *CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct {
    CUdeviceptr target;
    size_t pitch;
    uint32_t value, element_bytes;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

enum {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20,
    CU_AD_FORMAT_NV12 = 0xb0,
};

enum {
    CUDA_ARRAY3D_LAYERED = 0x01,
    CUDA_ARRAY3D_CUBEMAP = 0x04,
    CUDA_ARRAY3D_SPARSE = 0x40,
    CUDA_ARRAY3D_DEFERRED = 0x80
};

typedef struct {
    size_t width, height;
    uint32_t format, channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t width, height, depth;
    uint32_t format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    size_t bytes, alignment;
    uint32_t reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

enum {
    CU_MEM_LOCATION_TYPE_NONE = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6, /* the id's lowest byte: device; the next one: domain */
};

typedef struct {
    uint32_t type;
    int id;
} CUmemLocation;

enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_ALLOCATION_TYPE_MANAGED = 2 };
enum { CU_MEM_HANDLE_TYPE_NONE = 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1 };
enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };

typedef struct {
    uint32_t type, handle_types;
    CUmemLocation location;
    void *windows;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    uint32_t access;
} CUmemAccessDesc;

typedef struct {
    uint32_t type, handle_types;
    CUmemLocation location;
    void *windows;
    size_t most_bytes;
    unsigned short usage;
    unsigned char rdma, reserved[53];
} CUmemPoolProps;

typedef enum {
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
} CUmemPool_attribute;

typedef enum {
    CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
    CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
} CUgraphMem_attribute;

typedef struct {
    CUmemPoolProps pool;
    const CUmemAccessDesc *access;
    size_t access_count;
    size_t bytes;
    CUdeviceptr address;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
    unsigned char bytes[64];
} CUmemPoolPtrExportData;

typedef struct {
    unsigned char bytes[64];
} CUipcMemHandle;

typedef enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_POINTER_ATTRIBUTE_MAPPED = 13,
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
    CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
    CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
} CUpointer_attribute;

_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "layout");
_Static_assert(sizeof(CUDA_LAUNCH_PARAMS) == 56 && offsetof(CUDA_LAUNCH_PARAMS, stream) == 40, "layout");
_Static_assert(sizeof(CUgraphNodeParams) == 256 && sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "layout");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "layout");
_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == 40, "memset");
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24, "array");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "array");
_Static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32, "array");
_Static_assert(sizeof(CUmemAllocationProp) == 32 && offsetof(CUmemAllocationProp, flags) == 24,
               "allocation properties");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "access");
_Static_assert(sizeof(CUmemPoolProps) == 88 && offsetof(CUmemPoolProps, most_bytes) == 24, "pool properties");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "graph allocation");
_Static_assert(offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, address) == 112, "graph allocation");
