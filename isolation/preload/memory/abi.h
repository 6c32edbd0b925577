/* What of the driver API memory's hooks need beside core/abi.h: interface facts in our own words, 64-bit Linux. */
#pragma once

#include "../core/abi.h"

enum { CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906 };

typedef struct cuda_array *CUarray;
typedef struct cuda_mipmaps *CUmipmappedArray;
typedef struct cuda_pool *CUmemoryPool;
typedef struct cuda_module *CUmodule;
typedef struct cuda_library *CUlibrary;
typedef struct cuda_graph *CUgraph;
typedef struct cuda_node *CUgraphNode;
typedef struct cuda_executable *CUgraphExec;
typedef struct cuda_green *CUgreenCtx;
typedef struct cuda_resources *CUdevResourceDesc;
typedef unsigned long long CUmemGenericAllocationHandle;

enum {
    CU_MEM_LOCATION_TYPE_NONE = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6, /* the id's lowest byte is the device, the next one the domain */
};
enum { CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_ALLOCATION_TYPE_MANAGED = 2 };

typedef struct {
    unsigned type;
    int id;
} CUmemLocation;

typedef struct {
    unsigned type, handle_types;
    CUmemLocation location;
    void *windows;
    unsigned char flags[8];
} CUmemAllocationProp;

typedef struct {
    unsigned type, handle_types;
    CUmemLocation location;
    void *windows;
    size_t most_bytes;
    unsigned char reserved[56];
} CUmemPoolProps;

typedef struct {
    unsigned char bytes[64];
} CUipcMemHandle;

typedef struct {
    unsigned char bytes[64];
} CUmemPoolPtrExportData;

enum {
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
};

typedef struct {
    size_t width, height;
    unsigned format, channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t width, height, depth;
    unsigned format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

enum { CUDA_ARRAY3D_SPARSE = 0x40, CUDA_ARRAY3D_DEFERRED = 0x80 };

typedef struct {
    size_t bytes, alignment;
    unsigned reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

enum { CU_GRAPH_NODE_TYPE_CHILD = 4, CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10 };
enum { CU_GRAPH_INSTANTIATE_UPLOAD = 2 };

typedef struct {
    CUmemPoolProps pool;
    const void *access;
    size_t access_count;
    size_t bytes;
    CUdeviceptr address;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
    unsigned long long flags;
    CUstream upload;
    CUgraphNode failed;
    int result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

_Static_assert(sizeof(CUmemAllocationProp) == 32 && offsetof(CUmemAllocationProp, location) == 8, "layout");
_Static_assert(sizeof(CUmemPoolProps) == 88 && offsetof(CUmemPoolProps, most_bytes) == 24, "layout");
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24 && sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "layout");
_Static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32, "layout");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120 && offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, bytes) == 104,
               "layout");
_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "layout");
