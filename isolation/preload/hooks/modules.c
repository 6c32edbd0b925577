/* Code and limits: what they take of a card only NVML shows, so the broker is told that it is time to look. */
#include "hooks.h"

static CUresult hinted(CUresult result) {
    unsigned card;
    CUcontext context;
    if (result == CUDA_SUCCESS && current_card(&card, &context)) account_tell(card, 0);
    return result;
}

HOOK_CALL(cuModuleLoad, CUmodule *module, const char *path) { return hinted(DRIVER(REAL(cuModuleLoad)(module, path))); }

HOOK_CALL(cuModuleLoadData, CUmodule *module, const void *image) {
    return hinted(DRIVER(REAL(cuModuleLoadData)(module, image)));
}

HOOK_CALL(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned count, int *options, void **values) {
    return hinted(DRIVER(REAL(cuModuleLoadDataEx)(module, image, count, options, values)));
}

HOOK_CALL(cuModuleLoadFatBinary, CUmodule *module, const void *image) {
    return hinted(DRIVER(REAL(cuModuleLoadFatBinary)(module, image)));
}

HOOK_CALL(cuModuleUnload, CUmodule module) { return hinted(DRIVER(REAL(cuModuleUnload)(module))); }

HOOK_CALL(cuLibraryLoadData, CUlibrary *library, const void *code, int *options, void **values, unsigned count,
          int *more, void **more_values, unsigned more_count) {
    return hinted(
        DRIVER(REAL(cuLibraryLoadData)(library, code, options, values, count, more, more_values, more_count)));
}

HOOK_CALL(cuLibraryLoadFromFile, CUlibrary *library, const char *path, int *options, void **values, unsigned count,
          int *more, void **more_values, unsigned more_count) {
    return hinted(
        DRIVER(REAL(cuLibraryLoadFromFile)(library, path, options, values, count, more, more_values, more_count)));
}

HOOK_CALL(cuLibraryUnload, CUlibrary library) { return hinted(DRIVER(REAL(cuLibraryUnload)(library))); }

HOOK_CALL(cuCtxSetLimit, int limit, size_t value) { return hinted(DRIVER(REAL(cuCtxSetLimit)(limit, value))); }
