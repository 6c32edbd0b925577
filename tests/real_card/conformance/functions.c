/* cuGetProcAddress, and code by name. */
#include "conformance.h"

#include <stdio.h>

/* "found", "unknown name" and "version too old" are statuses 0, 1 and 2. */
static void ask(const char *fact, const char *name, int version, u64 flags) {
    void *address = &address;
    int status = -1;
    const CUresult code = CU(cuGetProcAddress_v2, name, &address, version, flags, &status);
    char longer[96];
    tell_cuda(fact, code);
    snprintf(longer, sizeof longer, "%s_status", fact);
    tell(longer, "%d", status);
    snprintf(longer, sizeof longer, "%s_address", fact);
    tell(longer, "%s", address == &address ? "untouched" : address ? "some" : "null");
}

CASE(functions, found_or_not) {
    ask("known", "cuMemAlloc", 12000, 0);
    ask("unknown", "cuNothing", 12000, 0);
    ask("too_old", "cuLaunchKernelEx", 11000, 0);
    ask("of_a_later_driver", "cuMemAlloc", 99000, 0);
    ask("empty", "", 0, 0);
    ask("empty_of_12", "", 12000, 0);
    ask("with_suffix", "cuMemAlloc_v2", 12000, 0);
    ask("per_thread_suffix", "cuLaunchKernel_ptsz", 12000, 0);
    ask("both_streams", "cuLaunchKernel", 12000, 3);
    ask("unknown_flag", "cuLaunchKernel", 12000, 4);
    ask("version_0", "cuMemAlloc", 0, 0);
    ask("negative_version", "cuMemAlloc", -1, 0);
}

CASE(functions, no_name) {
    void *address;
    int status;
    TELL("no_name", cuGetProcAddress_v2, NULL, &address, 12000, 0, &status);
    TELL("no_room", cuGetProcAddress_v2, "cuMemAlloc", NULL, 12000, 0, &status);
    TELL("no_status", cuGetProcAddress_v2, "cuMemAlloc", &address, 12000, 0, NULL);
}

CASE(functions, first_version) {
    void *address = &address;
    TELL("unknown", cuGetProcAddress, "cuNothing", &address, 12000, 0);
    tell_yes("unknown_is_null", !address);
    TELL("too_old", cuGetProcAddress, "cuLaunchKernelEx", &address, 11000, 0);
    TELL("known", cuGetProcAddress, "cuMemAlloc", &address, 12000, 0);
}

/* One name, several interfaces: which is found, by comparison with the loader's result. */
static const struct form {
    const char *fact, *name;
    int version;
    u64 flags;
    const char *forms[4];
} forms[] = {
    {"alloc_2000", "cuMemAlloc", 2000, 0, {"cuMemAlloc", "cuMemAlloc_v2"}},
    {"alloc_3020", "cuMemAlloc", 3020, 0, {"cuMemAlloc", "cuMemAlloc_v2"}},
    {"launch_4000", "cuLaunchKernel", 4000, 0, {"cuLaunchKernel", "cuLaunchKernel_ptsz"}},
    {"launch_7000_legacy", "cuLaunchKernel", 7000, 1, {"cuLaunchKernel", "cuLaunchKernel_ptsz"}},
    {"launch_7000_per_thread", "cuLaunchKernel", 7000, 2, {"cuLaunchKernel", "cuLaunchKernel_ptsz"}},
    {"launch_6000_per_thread", "cuLaunchKernel", 6000, 2, {"cuLaunchKernel", "cuLaunchKernel_ptsz"}},
    {"copy_per_thread", "cuMemcpyHtoD", 12000, 2, {"cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"}},
    {"alloc_async_per_thread", "cuMemAllocAsync", 11020, 2, {"cuMemAllocAsync", "cuMemAllocAsync_ptsz"}},
    {"instantiate_10000", "cuGraphInstantiate", 10000, 0, {"cuGraphInstantiate", "cuGraphInstantiate_v2"}},
    {"instantiate_11000", "cuGraphInstantiate", 11000, 0, {"cuGraphInstantiate", "cuGraphInstantiate_v2"}},
    {"instantiate_12000",
     "cuGraphInstantiate",
     12000,
     0,
     {"cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags"}},
    {"ipc_open_4010", "cuIpcOpenMemHandle", 4010, 0, {"cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"}},
    {"ipc_open_11000", "cuIpcOpenMemHandle", 11000, 0, {"cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"}},
    {"context_3020", "cuCtxCreate", 3020, 0, {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3"}},
    {"context_11040", "cuCtxCreate", 11040, 0, {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3"}},
    {"capture_info_10010", "cuStreamGetCaptureInfo", 10010, 0, {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2"}},
    {"capture_info_11030", "cuStreamGetCaptureInfo", 11030, 0, {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2"}},
    {"get_11030", "cuGetProcAddress", 11030, 0, {"cuGetProcAddress", "cuGetProcAddress_v2"}},
    {"get_12000", "cuGetProcAddress", 12000, 0, {"cuGetProcAddress", "cuGetProcAddress_v2"}},
};

CASE(functions, forms) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *form = &forms[i];
        void *address = NULL;
        int status;
        NEED(cuGetProcAddress_v2, form->name, &address, form->version, form->flags, &status);
        const char *found = address ? "another" : "none";
        for (int n = 0; n < 4 && form->forms[n] && address; n++)
            if (cuda_symbol(form->forms[n]) == address) found = form->forms[n];
        tell(form->fact, "%s", found);
    }
}

CASE(functions, of_modules) {
    CUmodule module;
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;
    open_card();
    TELL("no_image", cuModuleLoadData, &module, NULL);
    NEED(cuModuleLoadData, &module, spinning_image());
    TELL("unknown_function", cuModuleGetFunction, &function, module, "nothing");
    TELL("no_name", cuModuleGetFunction, &function, module, NULL);
    TELL("empty_name", cuModuleGetFunction, &function, module, "");
    TELL("unknown_variable", cuModuleGetGlobal_v2, &address, &bytes, module, "nothing");
    TELL("unload", cuModuleUnload, module);
    const CUresult nonsense = CU(cuModuleLoadData, &module, "this is no image");
    tell_cuda("nonsense", nonsense);
    tell_yes("nonsense_is_refused", nonsense != CUDA_SUCCESS);
}

CASE(functions, launches) {
    u64 none = 0;
    void *parameters[] = {&none};
    open_card();
    const CUfunction f = spinning();
    TELL("no_function", cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    TELL("no_blocks", cuLaunchKernel, f, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    TELL("no_threads", cuLaunchKernel, f, 1, 1, 1, 0, 1, 1, 0, NULL, parameters, NULL);
    TELL("threads_1024", cuLaunchKernel, f, 1, 1, 1, 1024, 1, 1, 0, NULL, parameters, NULL);
    TELL("threads_1025", cuLaunchKernel, f, 1, 1, 1, 1025, 1, 1, 0, NULL, parameters, NULL);
    TELL("threads_32_32_2", cuLaunchKernel, f, 1, 1, 1, 32, 32, 2, 0, NULL, parameters, NULL);
    TELL("threads_deep_65", cuLaunchKernel, f, 1, 1, 1, 1, 1, 65, 0, NULL, parameters, NULL);
    TELL("blocks_high_65536", cuLaunchKernel, f, 1, 65536, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    TELL("shared_48_kib", cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 48 << 10, NULL, parameters, NULL);
    TELL("shared_a_byte_more", cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, (48 << 10) + 1, NULL, parameters, NULL);
    TELL("afterwards", cuCtxSynchronize);
}
