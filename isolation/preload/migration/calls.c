/* Which driver calls pass the barrier, and which are implemented here: slots are filled with these functions, so
 * everything above, including hooks, calls them as it would call the driver.
 *
 * All names with the prefix of a family that can touch, take or free memory pass the barrier. A call of a newer driver
 * that is unknown here goes straight to the driver: it must not touch memory that moves.
 */
#include "../frame/entries.h"
#include "migration.h"

#include "../presence/presence.h"

#include <stdatomic.h>
#include <string.h>

enum place {
#define NAME(name) PLACE_##name,
#include "driver/cuda.def"
#undef NAME
#undef ROUTE
    PLACES
};

/* ---- calls behind the barrier ------------------------------------------------------------------------------------ */

/* None of these functions has more arguments than these, or any that is not an integer or address. */
typedef uint64_t word;
#define WORDS word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l
typedef word any_function(WORDS);

static void *_Atomic theirs[PLACES];

static void *their(enum place place) { return atomic_load_explicit(&theirs[place], memory_order_relaxed); }

static __attribute__((noinline)) word by_door(WORDS, enum place place) {
    presence_enter();
    const word result = ((any_function *)their(place))(a, b, c, d, e, f, g, h, i, j, k, l);
    presence_leave();
    return result;
}

#define NAME(name)                                                                                                     \
    static __attribute__((used)) word by_door_##name(WORDS) {                                                          \
        return by_door(a, b, c, d, e, f, g, h, i, j, k, l, PLACE_##name);                                              \
    }
#include "driver/cuda.def"
#undef NAME
#undef ROUTE

/* By place, as offsets: addresses would need relocations in every process. */
__asm__(".pushsection .rodata\n.p2align 2\ndoors:\n"
#define NAME(name) ".long by_door_" #name " - doors\n"
#include "driver/cuda.def"
#undef NAME
#undef ROUTE
        ".popsection");
extern HIDDEN const int32_t doors[];

static void *door(uint32_t place) { return (char *)doors + doors[place]; }

static const char touching[][24] = {
    "cuArray",
    "cuExternalMemory",
    "cuFunc",
    "cuGL",
    "cuGraph",
    "cuGreenCtx",
    "cuImportExternal",
    "cuIpc",
    "cuKernel",
    "cuLaunch",
    "cuLibrary",
    "cuMem",
    "cuMipmapped",
    "cuModule",
    "cuMulticast",
    "cuParam",
    "cuPointer",
    "cuSurf",
    "cuTex",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxDetach",
    "cuCtxSetLimit",
    "cuDevicePrimaryCtxRe",
    "cuStreamAttach",
    "cuStreamBatch",
    "cuStreamBeginCapture",
    "cuStreamWaitValue",
    "cuStreamWriteValu",
};

static bool touches(const char *name) {
    for (size_t n = 0; n < sizeof touching / sizeof *touching; n++)
        if (!strncmp(name, touching[n], strlen(touching[n]))) return true;
    return false;
}

/* ---- calls implemented here -------------------------------------------------------------------------------------- */

#define THEIR(name, ...) ((CUresult (*)(__VA_ARGS__))their(PLACE_##name))

static CUresult own_alloc(CUdeviceptr *address, size_t bytes) {
    presence_enter();
    CUresult result = region_make(address, bytes);
    if (result == CUDA_ERROR_NOT_SUPPORTED) result = THEIR(cuMemAlloc_v2, CUdeviceptr *, size_t)(address, bytes);
    presence_leave();
    return result;
}

/* Rows begin where the driver's would. */
static CUresult own_pitch(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element) {
    enum { ROW = 512 };
    const size_t row = (width + ROW - 1) / ROW * ROW;
    size_t bytes;
    const bool is_ours = address && pitch && width && width <= row && !__builtin_mul_overflow(row, height, &bytes) &&
                         (element == 4 || element == 8 || element == 16);
    presence_enter();
    CUresult result = is_ours ? region_make(address, bytes) : CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        *pitch = row;
    else if (result == CUDA_ERROR_NOT_SUPPORTED)
        result = THEIR(cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t, unsigned)(address, pitch, width,
                                                                                              height, element);
    presence_leave();
    return result;
}

static CUresult own_free(CUdeviceptr address) {
    CUresult result;
    presence_enter();
    if (!region_free(address, &result)) result = THEIR(cuMemFree_v2, CUdeviceptr)(address);
    presence_leave();
    return result;
}

static CUresult own_range(CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
    struct span span;
    presence_enter();
    const bool is_ours = region_at(address, &span);
    CUresult result = CUDA_SUCCESS;
    if (!is_ours) result = THEIR(cuMemGetAddressRange_v2, CUdeviceptr *, size_t *, CUdeviceptr)(start, bytes, address);
    presence_leave();
    if (is_ours && start) *start = span.address;
    if (is_ours && bytes) *bytes = span.bytes;
    return result;
}

/* Corrects the attributes of memory that the driver takes for something else. */
static bool correct(const struct span *span, int attribute, void *value) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = span->context; return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = span->address; return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = span->bytes; return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *(unsigned *)value = 0; return true;
    default: return false;
    }
}

static CUresult own_attribute(void *value, int attribute, CUdeviceptr address) {
    struct span span;
    presence_enter();
    CUresult result = CUDA_SUCCESS;
    if (!value || !region_at(address, &span) || !correct(&span, attribute, value))
        result = THEIR(cuPointerGetAttribute, void *, int, CUdeviceptr)(value, attribute, address);
    presence_leave();
    return result;
}

static CUresult own_attributes(unsigned many, int *attributes, void **values, CUdeviceptr address) {
    struct span span;
    presence_enter();
    const CUresult result =
        THEIR(cuPointerGetAttributes, unsigned, int *, void **, CUdeviceptr)(many, attributes, values, address);
    if (result == CUDA_SUCCESS && region_at(address, &span))
        for (unsigned n = 0; n < many; n++)
            if (values[n]) correct(&span, attributes[n], values[n]);
    presence_leave();
    return result;
}

/* Another process would hold a piece, which then could not be moved; programs see a card without IPC. */
static CUresult own_ipc_handle(CUipcMemHandle *handle, CUdeviceptr address) {
    struct span span;
    presence_enter();
    const CUresult result = region_at(address, &span)
                                ? CUDA_ERROR_NOT_SUPPORTED
                                : THEIR(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr)(handle, address);
    presence_leave();
    return result;
}

static CUresult own_range_handle(void *handle, CUdeviceptr address, size_t bytes, int type, uint64_t flags) {
    struct span span;
    presence_enter();
    const CUresult result = region_at(address, &span)
                                ? CUDA_ERROR_NOT_SUPPORTED
                                : THEIR(cuMemGetHandleForAddressRange, void *, CUdeviceptr, size_t, int,
                                        uint64_t)(handle, address, bytes, type, flags);
    presence_leave();
    return result;
}

/* Memory of cuMemAlloc has no handle. */
static CUresult own_retain(CUmemGenericAllocationHandle *handle, void *address) {
    struct span span;
    presence_enter();
    const CUresult result =
        region_at((CUdeviceptr)address, &span)
            ? CUDA_ERROR_INVALID_VALUE
            : THEIR(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *, void *)(handle, address);
    presence_leave();
    return result;
}

/* Other processes' memory leaves the card when it is this process's turn, so only its limit bounds what it can have. */
static CUresult own_info(size_t *left, size_t *total) {
    const CUresult result = THEIR(cuMemGetInfo_v2, size_t *, size_t *)(left, total);
    if (result == CUDA_SUCCESS && left && total) *left = *total;
    return result;
}

static void *own(enum place place) {
    switch (place) {
    case PLACE_cuMemAlloc_v2: return own_alloc;
    case PLACE_cuMemAllocPitch_v2: return own_pitch;
    case PLACE_cuMemFree_v2: return own_free;
    case PLACE_cuMemGetAddressRange_v2: return own_range;
    case PLACE_cuMemGetInfo_v2: return own_info;
    case PLACE_cuPointerGetAttribute: return own_attribute;
    case PLACE_cuPointerGetAttributes: return own_attributes;
    case PLACE_cuIpcGetMemHandle: return own_ipc_handle;
    case PLACE_cuMemGetHandleForAddressRange: return own_range_handle;
    case PLACE_cuMemRetainAllocationHandle: return own_retain;
    default: return NULL;
    }
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

enum { UNKNOWN, OFF, ON };

bool moving_is_on(void) {
    static _Atomic uint32_t known;
    uint32_t now = atomic_load(&known);
    if (now == UNKNOWN) {
        now = os_broker_says("moving") ? ON : OFF;
        if (now == ON) atomic_fetch_or(&session_flags, WIRE_MOVES);
        atomic_store(&known, now);
    }
    return now == ON;
}

void *moving_through(uint32_t place, const char *name, void *found) {
    if (place >= PLACES || !moving_is_on()) return found;
    atomic_store(&theirs[place], found);
    void *const ours = own((enum place)place);
    return ours ? ours : touches(name) ? door(place) : found;
}

void *moving_entry(uint32_t place) {
    if (place >= PLACES || !moving_is_on() || !touches(name_at(place))) return NULL;
    void *const ours = own((enum place)place);
    return ours ? ours : door(place);
}
