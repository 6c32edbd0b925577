#include "kinds.h"

enum { LEVELS = 3 };

#define BLOCK (2 * MIB)
#define POOL_GROWTH (32 * MIB)

static CUdevice device;
static u64 context_bytes;
static CUmemoryPool pool;
static CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

void kinds_begin(int which, u64 context) {
    device = which;
    context_bytes = context;
    on_device.location.id = which;
    NEED(cuDeviceGetDefaultMemPool, &pool, device);
}

static u64 rounded(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

static u64 in_blocks(u64 bytes) { return rounded(bytes, BLOCK); }

static u64 in_growth(u64 bytes) { return rounded(bytes, POOL_GROWTH); }

/* ---- plain memory ------------------------------------------------------------------------------------------------ */

static CUresult take_plain(struct held *held, u64 bytes) { return driver.cuMemAlloc_v2(&held->address, bytes); }

static void give_plain(struct held *held) { NEED(cuMemFree_v2, held->address); }

static u64 small_worst(u64 bytes) {
    (void)bytes;
    return BLOCK;
}

static CUresult take_small(struct held *held, u64 bytes) {
    return driver.cuMemAlloc_v2(&held->address, 1 + bytes % (MIB / 2));
}

static CUresult take_pitch(struct held *held, u64 bytes) {
    size_t pitch;
    return driver.cuMemAllocPitch_v2(&held->address, &pitch, 1024, bytes / 1024, 4);
}

static CUresult take_managed(struct held *held, u64 bytes) {
    return driver.cuMemAllocManaged(&held->address, bytes, 1);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

u64 pool_reserved(void) {
    u64 bytes;
    NEED(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

static CUresult take_pool(struct held *held, u64 bytes) {
    return driver.cuMemAllocAsync(&held->address, bytes, held->stream);
}

static void give_pool(struct held *held) { NEED(cuMemFreeAsync, held->address, held->stream); }

static CUresult take_own_pool(struct held *held, u64 bytes) {
    const CUmemPoolProps properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_device.location};
    NEED(cuMemPoolCreate, &held->pool, &properties);
    const CUresult result = driver.cuMemAllocFromPoolAsync(&held->address, bytes, held->pool, held->stream);
    if (result == CUDA_SUCCESS) return result;
    NEED(cuStreamSynchronize, held->stream); /* the pool may have grown before it was refused */
    NEED(cuMemPoolDestroy, held->pool);
    return result;
}

static void give_own_pool(struct held *held) {
    NEED(cuMemFreeAsync, held->address, held->stream);
    NEED(cuStreamSynchronize, held->stream);
    NEED(cuMemPoolDestroy, held->pool);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static u64 array_worst(u64 bytes) { return in_blocks(bytes) + BLOCK; }

static CUresult take_array(struct held *held, u64 bytes) {
    const CUDA_ARRAY3D_DESCRIPTOR floats = {
        .width = 1024, .height = bytes / 4096, .format = CU_AD_FORMAT_FLOAT, .channels = 1};
    return driver.cuArray3DCreate_v2(&held->array, &floats);
}

static void give_array(struct held *held) { NEED(cuArrayDestroy, held->array); }

static u64 mipmaps_worst(u64 bytes) { return in_blocks(bytes + bytes / 2) + BLOCK; }

static CUresult take_mipmaps(struct held *held, u64 bytes) {
    const CUDA_ARRAY3D_DESCRIPTOR floats = {
        .width = 1024, .height = bytes / 4096, .format = CU_AD_FORMAT_FLOAT, .channels = 1};
    return driver.cuMipmappedArrayCreate(&held->mipmaps, &floats, LEVELS);
}

static void give_mipmaps(struct held *held) { NEED(cuMipmappedArrayDestroy, held->mipmaps); }

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

static CUresult take_mapped(struct held *held, u64 bytes) {
    const CUmemAccessDesc access = {on_device.location, CU_MEM_ACCESS_READWRITE};
    const CUresult result = driver.cuMemCreate(&held->memory, bytes, &on_device, 0);
    if (result != CUDA_SUCCESS) return result;
    NEED(cuMemAddressReserve, &held->address, bytes, 0, 0, 0);
    NEED(cuMemMap, held->address, bytes, 0, held->memory, 0);
    NEED(cuMemSetAccess, held->address, bytes, &access, 1);
    return CUDA_SUCCESS;
}

/* The handle is released first: the mapping keeps the memory. */
static void give_mapped(struct held *held) {
    NEED(cuMemRelease, held->memory);
    NEED(cuMemUnmap, held->address, held->bytes);
    NEED(cuMemAddressFree, held->address, held->bytes);
}

/* ---- memory of graphs -------------------------------------------------------------------------------------------- */

static CUresult captured(CUstream stream, u64 bytes, CUgraphExec *executable) {
    CUgraph graph;
    CUdeviceptr address;
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_THREAD_LOCAL);
    const CUresult result = driver.cuMemAllocAsync(&address, bytes, stream);
    if (result == CUDA_SUCCESS) NEED(cuMemFreeAsync, address, stream);
    NEED(cuStreamEndCapture, stream, &graph);
    const CUresult instantiated =
        result == CUDA_SUCCESS ? driver.cuGraphInstantiateWithFlags(executable, graph, 0) : result;
    if (graph) NEED(cuGraphDestroy, graph);
    return instantiated;
}

/* Memory of a launch stays for the next one, until it is trimmed. */
static CUresult take_graph(struct held *held, u64 bytes) {
    CUresult result = captured(held->stream, bytes, &held->executable);
    if (result != CUDA_SUCCESS) return result;
    result = driver.cuGraphLaunch(held->executable, held->stream);
    NEED(cuStreamSynchronize, held->stream);
    if (result != CUDA_SUCCESS) NEED(cuGraphExecDestroy, held->executable);
    return result;
}

static void give_graph(struct held *held) {
    NEED(cuGraphExecDestroy, held->executable);
    NEED(cuDeviceGraphMemTrim, device);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Only a process's first context allocates anything, but that is not known before: there must be room for another. */
static u64 context_worst(u64 bytes) {
    (void)bytes;
    return context_bytes;
}

/* cuCtxCreate also makes it current, in this thread alone, so it is popped. */
static CUresult take_context(struct held *held, u64 bytes) {
    (void)bytes;
    const CUresult result = driver.cuCtxCreate_v2(&held->context, 0, device);
    if (result == CUDA_SUCCESS) NEED(cuCtxPopCurrent_v2, &held->context);
    return result;
}

static void give_context(struct held *held) { NEED(cuCtxDestroy_v2, held->context); }

const struct kind kinds[] = {
    {"plain", in_blocks, take_plain, give_plain, false, false},
    {"small", small_worst, take_small, give_plain, false, false},
    {"pitch", in_blocks, take_pitch, give_plain, false, false},
    {"managed", in_blocks, take_managed, give_plain, false, false},
    {"pool", in_growth, take_pool, give_pool, true, false},
    {"own-pool", in_growth, take_own_pool, give_own_pool, false, false},
    {"array", array_worst, take_array, give_array, false, false},
    {"mipmaps", mipmaps_worst, take_mipmaps, give_mipmaps, false, false},
    {"mapped", in_blocks, take_mapped, give_mapped, false, false},
    {"graph", in_blocks, take_graph, give_graph, false, false},
    {"context", context_worst, take_context, give_context, false, true},
};
const unsigned kinds_count = sizeof kinds / sizeof *kinds;
