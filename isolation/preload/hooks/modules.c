/* Code and limits: only NVML shows what they take of a card. So loading is refused if there is no room, and the broker
 * is told to measure the card. Code is loaded with its module, or lazily at a function's first launch. */
#include "../memory/growth.h"
#include "hooks.h"

REAL_CALL(cuFuncGetAttribute, int *value, int attribute, CUfunction function);
REAL_CALL(cuKernelGetAttribute, int *value, int attribute, CUkernel kernel, CUdevice device);
REAL_CALL(cuCtxGetDevice, CUdevice *device);

static CUresult hinted(CUresult result) {
    unsigned card;
    CUcontext context;
    if (result != CUDA_SUCCESS || !current_card(&card, &context)) return result;
    account_tell(card, WIRE_GREW);
    growth_comes(card);
    return result;
}

/* Without a context the driver loads nothing yet, or refuses. While the broker is unavailable there is no information,
 * and programs continue. */
static CUresult has_room(void) {
    unsigned card;
    CUcontext context;
    const CUresult result = current_card(&card, &context) ? account_code(card) : CUDA_SUCCESS;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_SUCCESS;
}

#define LOAD(call)                                                                                                     \
    do {                                                                                                               \
        TRY(has_room());                                                                                               \
        return hinted(DRIVER(call));                                                                                   \
    } while (0)

HOOK_CALL(cuModuleLoad, CUmodule *module, const char *path) { LOAD(REAL(cuModuleLoad)(module, path)); }

HOOK_CALL(cuModuleLoadData, CUmodule *module, const void *image) { LOAD(REAL(cuModuleLoadData)(module, image)); }

HOOK_CALL(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned count, int *options, void **values) {
    LOAD(REAL(cuModuleLoadDataEx)(module, image, count, options, values));
}

HOOK_CALL(cuModuleLoadFatBinary, CUmodule *module, const void *image) {
    LOAD(REAL(cuModuleLoadFatBinary)(module, image));
}

HOOK_CALL(cuModuleUnload, CUmodule module) {
    locals_owner_gone(module);
    return hinted(DRIVER(REAL(cuModuleUnload)(module)));
}

HOOK_CALL(cuLibraryLoadData, CUlibrary *library, const void *code, int *options, void **values, unsigned count,
          int *more, void **more_values, unsigned more_count) {
    LOAD(REAL(cuLibraryLoadData)(library, code, options, values, count, more, more_values, more_count));
}

HOOK_CALL(cuLibraryLoadFromFile, CUlibrary *library, const char *path, int *options, void **values, unsigned count,
          int *more, void **more_values, unsigned more_count) {
    LOAD(REAL(cuLibraryLoadFromFile)(library, path, options, values, count, more, more_values, more_count));
}

HOOK_CALL(cuLibraryUnload, CUlibrary library) {
    locals_owner_gone(library);
    return hinted(DRIVER(REAL(cuLibraryUnload)(library)));
}

HOOK_CALL(cuCtxSetLimit, int limit, size_t value) {
    enum { STACK_BYTES = 0 };
    if (limit == STACK_BYTES) TRY(locals_take(value));
    return hinted(DRIVER(REAL(cuCtxSetLimit)(limit, value)));
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

enum { LOCAL_BYTES = 3 };

uint64_t function_locals(CUfunction function) {
    int bytes;
    if (DRIVER(REAL(cuFuncGetAttribute)(&bytes, LOCAL_BYTES, function)) != CUDA_SUCCESS) return 0;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* For the current device: kernels have none of their own. */
uint64_t kernel_locals(CUkernel kernel) {
    CUdevice device;
    int bytes;
    if (DRIVER(REAL(cuCtxGetDevice)(&device)) != CUDA_SUCCESS) return 0;
    if (DRIVER(REAL(cuKernelGetAttribute)(&bytes, LOCAL_BYTES, kernel, device)) != CUDA_SUCCESS) return 0;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void found(CUfunction function, const void *owner, uint64_t locals) {
    unsigned card;
    CUcontext context;
    const bool awaited = locals > LOCALS_AT_FIRST;
    locals_await(function, owner, locals);
    if (awaited) lanes_void(), gates_review();
    if (current_card(&card, &context)) growth_comes(card);
}

HOOK_CALL(cuModuleGetFunction, CUfunction *function, CUmodule module, const char *name) {
    const CUresult result = DRIVER(REAL(cuModuleGetFunction)(function, module, name));
    if (result == CUDA_SUCCESS) found(*function, module, function_locals(*function));
    return result;
}

HOOK_CALL(cuLibraryGetKernel, CUkernel *kernel, CUlibrary library, const char *name) {
    const CUresult result = DRIVER(REAL(cuLibraryGetKernel)(kernel, library, name));
    if (result == CUDA_SUCCESS) found(*kernel, library, kernel_locals(*kernel));
    return result;
}

HOOK_CALL(cuKernelGetFunction, CUfunction *function, CUkernel kernel) {
    const CUresult result = DRIVER(REAL(cuKernelGetFunction)(function, kernel));
    if (result == CUDA_SUCCESS) locals_also(*function, kernel);
    return result;
}

/* A captured launch takes nothing before its graph is instantiated. */
CUresult function_comes(CUfunction function, CUstream stream) {
    const uint64_t locals = locals_of(function);
    if (!locals || is_capturing(stream)) return CUDA_SUCCESS;
    TRY(locals_take(locals));
    locals_came(function);
    if (!locals_awaited()) gates_review();
    return CUDA_SUCCESS;
}
