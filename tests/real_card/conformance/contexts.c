/* Contexts: stacks, destruction, primary contexts. */
#include "conformance.h"

CASE(contexts, stack) {
    CUcontext one, two, current;
    CUdevice device;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    TELL("pop_of_nothing", cuCtxPopCurrent_v2, &current);
    TELL("push_null", cuCtxPushCurrent_v2, NULL);
    TELL("device_without", cuCtxGetDevice, &device);
    TELL("flags_without", cuCtxGetFlags, &(unsigned){0});
    NEED(cuCtxGetCurrent, &current);
    tell_yes("none_at_first", !current);
    NEED(cuCtxCreate_v2, &one, 0, device);
    NEED(cuCtxGetCurrent, &current);
    tell_yes("created_is_current", current == one);
    NEED(cuCtxCreate_v2, &two, 0, device);
    NEED(cuCtxPopCurrent_v2, &current);
    tell_yes("pop_gives_the_newest", current == two);
    NEED(cuCtxGetCurrent, &current);
    tell_yes("the_older_is_current_again", current == one);
    NEED(cuCtxSetCurrent, NULL);
    NEED(cuCtxGetCurrent, &current);
    tell_yes("set_to_null_pops", !current);
    TELL("no_card", cuCtxCreate_v2, &one, 0, 99);
    TELL("unknown_flag", cuCtxCreate_v2, &one, 1 << 20, device);
}

CASE(contexts, destroy) {
    CUcontext context, current = (CUcontext)7;
    CUdevice device;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    NEED(cuCtxCreate_v2, &context, 0, device);
    TELL("current", cuCtxDestroy_v2, context);
    NEED(cuCtxGetCurrent, &current);
    tell_yes("none_is_current_then", !current);
    TELL("null", cuCtxDestroy_v2, NULL);
}

/* A real driver may crash here. */
CASE(contexts, void_handle) {
    CUcontext context;
    CUdevice device;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    NEED(cuCtxCreate_v2, &context, 0, device);
    NEED(cuCtxDestroy_v2, context);
    TELL("set", cuCtxSetCurrent, context);
    TELL("destroy", cuCtxDestroy_v2, context);
}

static void destroy(void *context) { NEED(cuCtxDestroy_v2, context); }

CASE(contexts, destroyed_by_another_thread) {
    CUcontext context, current = NULL;
    CUdeviceptr address;
    const CUdevice device = open_card();
    NEED(cuCtxCreate_v2, &context, 0, device);
    in_thread(destroy, context);
    TELL("current", cuCtxGetCurrent, &current);
    tell_yes("is_still_current", current == context);
    TELL("alloc", cuMemAlloc_v2, &address, 64);
    TELL("synchronize", cuCtxSynchronize);
}

CASE(contexts, memory_goes_along) {
    CUcontext context;
    const CUdevice device = open_card();
    const size_t before = free_bytes();
    NEED(cuCtxCreate_v2, &context, 0, device);
    const CUdeviceptr address = allocated(64 * MIB);
    NEED(cuCtxDestroy_v2, context);
    tell_yes("all_of_it", before - free_bytes() < 64 * MIB);
    TELL("free", cuMemFree_v2, address);
}

CASE(contexts, primary) {
    CUcontext one, two;
    CUdevice device;
    unsigned flags = 99;
    int active = -1;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    NEED(cuDevicePrimaryCtxGetState, device, &flags, &active);
    tell("at_first", "active %d, flags %u", active, flags);
    TELL("release_of_none", cuDevicePrimaryCtxRelease_v2, device);
    TELL("set_flags", cuDevicePrimaryCtxSetFlags_v2, device, CU_CTX_SCHED_BLOCKING_SYNC);
    NEED(cuDevicePrimaryCtxRetain, &one, device);
    NEED(cuDevicePrimaryCtxRetain, &two, device);
    tell_yes("is_one", one == two);
    NEED(cuDevicePrimaryCtxGetState, device, &flags, &active);
    tell("retained", "active %d, flags %u", active, flags);
    TELL("set_flags_while_active", cuDevicePrimaryCtxSetFlags_v2, device, 0);
    TELL("destroy", cuCtxDestroy_v2, one);
    NEED(cuDevicePrimaryCtxRelease_v2, device);
    NEED(cuDevicePrimaryCtxGetState, device, &flags, &active);
    tell("released_once", "active %d", active);
    NEED(cuDevicePrimaryCtxRelease_v2, device);
    NEED(cuDevicePrimaryCtxGetState, device, &flags, &active);
    tell("released_twice", "active %d", active);
    TELL("release_again", cuDevicePrimaryCtxRelease_v2, device);
    TELL("unknown_flags", cuDevicePrimaryCtxSetFlags_v2, device, 1 << 20);
}

CASE(contexts, reset) {
    CUcontext context;
    CUdeviceptr address;
    int active = -1;
    unsigned flags;
    const CUdevice device = open_card();
    address = allocated(64 * MIB);
    TELL("reset", cuDevicePrimaryCtxReset_v2, device);
    NEED(cuDevicePrimaryCtxGetState, device, &flags, &active);
    tell("then", "active %d", active);
    TELL("free_then", cuMemFree_v2, address);
    NEED(cuDevicePrimaryCtxRetain, &context, device);
    NEED(cuCtxSetCurrent, context);
    TELL("alloc_anew", cuMemAlloc_v2, &address, 64);
}

CASE(contexts, limits) {
    enum { STACK = 0, PRINTF = 1, HEAP = 2, UNKNOWN = 99 };
    size_t value = 0;
    unsigned version = 0;
    CUcontext context;
    open_card();
    NEED(cuCtxGetLimit, &value, STACK);
    tell_number("stack", value);
    NEED(cuCtxGetLimit, &value, PRINTF);
    tell_number("printf", value);
    NEED(cuCtxGetLimit, &value, HEAP);
    tell_number("heap", value);
    TELL("unknown", cuCtxGetLimit, &value, UNKNOWN);
    TELL("set_unknown", cuCtxSetLimit, UNKNOWN, 1);
    NEED(cuCtxGetCurrent, &context);
    NEED(cuCtxGetApiVersion, context, &version);
    tell_number("api_version", version);
}

/* A faulting kernel: the context is lost, with everything that it had. */
CASE(contexts, fault) {
    static const char trapping[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                   ".visible .entry sim_trap()\n{\n    trap;\n    ret;\n}\n";
    CUmodule module;
    CUfunction function;
    CUdeviceptr address;
    const CUdevice device = open_card();
    NEED(cuModuleLoadData, &module, trapping);
    NEED(cuModuleGetFunction, &function, module, "sim_trap");
    TELL("launch", cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    const CUresult fault = CU(cuCtxSynchronize);
    tell_cuda("synchronize", fault);
    tell_yes("is_told", fault != CUDA_SUCCESS);
    tell_yes("stays", fault != CUDA_SUCCESS && CU(cuMemAlloc_v2, &address, 64) == fault);
    TELL("stream_query", cuStreamQuery, NULL);
    TELL("reset", cuDevicePrimaryCtxReset_v2, device);
}
