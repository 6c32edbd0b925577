/* Types of the driver API that memory, copies and arrays use: interface facts in our own words, x86-64.
 *
 * Names and layouts are those that programs are compiled against; fields are called what they mean to us. The sizes
 * and offsets that matter are asserted below. */
#pragma once

#include "../common/words.h"
#include "abi.h"

typedef struct array *CUarray;
typedef struct mipmaps *CUmipmappedArray;
typedef struct pool *CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct {
    CUdeviceptr target;
    size_t pitch;
    u32 value, element_bytes;
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
    u32 format, channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t width, height, depth;
    u32 format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    size_t bytes, alignment;
    u32 reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6, /* the id's lowest byte: device; the next one: domain */
};

typedef struct {
    u32 type;
    int id;
} CUmemLocation;

enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_ALLOCATION_TYPE_MANAGED = 2 };
enum { CU_MEM_HANDLE_TYPE_NONE = 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1 };
enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };

typedef struct {
    u32 type, handle_types;
    CUmemLocation location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    u32 access;
} CUmemAccessDesc;

typedef struct {
    u32 type, handle_types;
    CUmemLocation location;
    void *win32;
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
