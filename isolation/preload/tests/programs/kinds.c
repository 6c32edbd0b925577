#include "kinds.h"

enum { FLOATS = 0x20, CAPTURE_THREAD = 1, READ_WRITE = 3, LEVELS = 3 };

#define BLOCK (2 * MIB)
#define POOL_GROWTH (32 * MIB)

static int device;
static u64 context_bytes;
static handle pool;
static struct memory_properties on_device = {.type = 1, .location = {.type = 1}};

void kinds_begin(int which, u64 context) {
    device = which;
    context_bytes = context;
    on_device.location.id = which;
    require(cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool");
}

static u64 rounded(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

static u64 in_blocks(u64 bytes) { return rounded(bytes, BLOCK); }

static u64 in_growth(u64 bytes) { return rounded(bytes, POOL_GROWTH); }

/* ---- plain memory ------------------------------------------------------------------------------------------------ */

static int take_plain(struct held *held, u64 bytes) { return cuMemAlloc(&held->address, bytes); }

static void give_plain(struct held *held) { require(cuMemFree(held->address), "cuMemFree"); }

static u64 small_worst(u64 bytes) {
    (void)bytes;
    return BLOCK;
}

static int take_small(struct held *held, u64 bytes) { return cuMemAlloc(&held->address, 1 + bytes % (MIB / 2)); }

static int take_pitch(struct held *held, u64 bytes) {
    size_t pitch;
    return cuMemAllocPitch(&held->address, &pitch, 1024, bytes / 1024, 4);
}

static int take_managed(struct held *held, u64 bytes) { return cuMemAllocManaged(&held->address, bytes, 1); }

/* ---- pools ------------------------------------------------------------------------------------------------------- */

u64 pool_reserved(void) {
    u64 bytes;
    require(cuMemPoolGetAttribute(pool, POOL_RESERVED, &bytes), "cuMemPoolGetAttribute");
    return bytes;
}

static int take_pool(struct held *held, u64 bytes) { return cuMemAllocAsync(&held->address, bytes, held->stream); }

static void give_pool(struct held *held) { require(cuMemFreeAsync(held->address, held->stream), "cuMemFreeAsync"); }

static int take_own_pool(struct held *held, u64 bytes) {
    const struct pool_properties properties = {.type = 1, .location = {1, device}};
    require(cuMemPoolCreate(&held->object, &properties), "cuMemPoolCreate");
    const int result = cuMemAllocFromPoolAsync(&held->address, bytes, held->object, held->stream);
    if (result == SUCCESS) return result;
    require(cuStreamSynchronize(held->stream),
            "cuStreamSynchronize"); /* the pool may have grown before it was refused */
    require(cuMemPoolDestroy(held->object), "cuMemPoolDestroy");
    return result;
}

static void give_own_pool(struct held *held) {
    require(cuMemFreeAsync(held->address, held->stream), "cuMemFreeAsync");
    require(cuStreamSynchronize(held->stream), "cuStreamSynchronize");
    require(cuMemPoolDestroy(held->object), "cuMemPoolDestroy");
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static u64 array_worst(u64 bytes) { return in_blocks(bytes) + BLOCK; }

static int take_array(struct held *held, u64 bytes) {
    const struct array_description floats = {.width = 1024, .height = bytes / 4096, .format = FLOATS, .channels = 1};
    return cuArray3DCreate(&held->object, &floats);
}

static void give_array(struct held *held) { require(cuArrayDestroy(held->object), "cuArrayDestroy"); }

static u64 mipmaps_worst(u64 bytes) { return in_blocks(bytes + bytes / 2) + BLOCK; }

static int take_mipmaps(struct held *held, u64 bytes) {
    const struct array_description floats = {.width = 1024, .height = bytes / 4096, .format = FLOATS, .channels = 1};
    return cuMipmappedArrayCreate(&held->object, &floats, LEVELS);
}

static void give_mipmaps(struct held *held) {
    require(cuMipmappedArrayDestroy(held->object), "cuMipmappedArrayDestroy");
}

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

static int take_mapped(struct held *held, u64 bytes) {
    const struct memory_access access = {on_device.location, READ_WRITE};
    const int result = cuMemCreate(&held->memory, bytes, &on_device, 0);
    if (result != SUCCESS) return result;
    require(cuMemAddressReserve(&held->address, bytes, 0, 0, 0), "cuMemAddressReserve");
    require(cuMemMap(held->address, bytes, 0, held->memory, 0), "cuMemMap");
    require(cuMemSetAccess(held->address, bytes, &access, 1), "cuMemSetAccess");
    return SUCCESS;
}

/* The handle goes first: the mapping keeps the memory. */
static void give_mapped(struct held *held) {
    require(cuMemRelease(held->memory), "cuMemRelease");
    require(cuMemUnmap(held->address, held->bytes), "cuMemUnmap");
    require(cuMemAddressFree(held->address, held->bytes), "cuMemAddressFree");
}

/* ---- memory of graphs -------------------------------------------------------------------------------------------- */

static int captured(handle stream, u64 bytes, handle *executable) {
    handle graph;
    u64 address;
    require(cuStreamBeginCapture(stream, CAPTURE_THREAD), "cuStreamBeginCapture");
    const int result = cuMemAllocAsync(&address, bytes, stream);
    if (result == SUCCESS) require(cuMemFreeAsync(address, stream), "cuMemFreeAsync, captured");
    require(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    const int instantiated = result == SUCCESS ? cuGraphInstantiate(executable, graph, 0) : result;
    if (graph) require(cuGraphDestroy(graph), "cuGraphDestroy");
    return instantiated;
}

/* What a launch took stays for the next one, until it is trimmed. */
static int take_graph(struct held *held, u64 bytes) {
    int result = captured(held->stream, bytes, &held->object);
    if (result != SUCCESS) return result;
    result = cuGraphLaunch(held->object, held->stream);
    require(cuStreamSynchronize(held->stream), "cuStreamSynchronize");
    if (result != SUCCESS) require(cuGraphExecDestroy(held->object), "cuGraphExecDestroy");
    return result;
}

static void give_graph(struct held *held) {
    require(cuGraphExecDestroy(held->object), "cuGraphExecDestroy");
    require(cuDeviceGraphMemTrim(device), "cuDeviceGraphMemTrim");
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Only a process's first one takes anything, but that is not known before: there must be room for another. */
static u64 context_worst(u64 bytes) {
    (void)bytes;
    return context_bytes;
}

/* It is made current, too, which only the thread that made it would have to know. */
static int take_context(struct held *held, u64 bytes) {
    (void)bytes;
    const int result = cuCtxCreate(&held->object, 0, device);
    if (result == SUCCESS) require(cuCtxPopCurrent(&held->object), "cuCtxPopCurrent");
    return result;
}

static void give_context(struct held *held) { require(cuCtxDestroy(held->object), "cuCtxDestroy"); }

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
