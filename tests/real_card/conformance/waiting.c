/* Which calls wait for work on the card: each is made while a long kernel runs. */
#include "conformance.h"

enum { BESIDE = CU_STREAM_NON_BLOCKING };

CASE(waiting, free_of_memory) {
    open_card();
    const CUdeviceptr one = allocated(4 * MIB), two = allocated(4 * MIB), small = allocated(64);
    CUevent end = long_kernel(NULL);
    NEED(cuMemFree_v2, one);
    tell_waited("legacy_stream", end);
    end = long_kernel(new_stream(BESIDE));
    NEED(cuMemFree_v2, two);
    tell_waited("non_blocking_stream", end);
    end = long_kernel(new_stream(BESIDE));
    NEED(cuMemFree_v2, small);
    tell_waited("small_one", end);
}

CASE(waiting, alloc) {
    CUdeviceptr address;
    open_card();
    const CUstream stream = new_stream(BESIDE);
    CUevent end = long_kernel(stream);
    allocated(4 * MIB);
    tell_waited("alloc", end);
    end = long_kernel(stream);
    NEED(cuMemAllocAsync, &address, 4 * MIB, stream);
    tell_waited("alloc_async", end);
    end = long_kernel(stream);
    NEED(cuMemFreeAsync, address, stream);
    tell_waited("free_async", end);
}

CASE(waiting, host_memory) {
    void *one;
    open_card();
    CUevent end = long_kernel(new_stream(BESIDE));
    NEED(cuMemHostAlloc, &one, MIB, 0);
    tell_waited("alloc", end);
    end = long_kernel(new_stream(BESIDE));
    NEED(cuMemFreeHost, one);
    tell_waited("free", end);
}

CASE(waiting, copies) {
    static char plain[64];
    void *pinned;
    open_card();
    const CUdeviceptr address = allocated(MIB), other = allocated(MIB);
    NEED(cuMemHostAlloc, &pinned, MIB, 0);
    CUevent end = long_kernel(NULL);
    NEED(cuMemcpyDtoH_v2, plain, address, sizeof plain);
    tell_waited("out", end);
    end = long_kernel(new_stream(BESIDE));
    NEED(cuMemcpyDtoH_v2, plain, address, sizeof plain);
    tell_waited("out_beside", end);
    end = long_kernel(NULL);
    NEED(cuMemcpyDtoD_v2, other, address, 64);
    tell_waited("on_the_card", end);
    end = long_kernel(NULL);
    NEED(cuMemsetD8_v2, other, 0, 64);
    tell_waited("memset", end);
    end = long_kernel(NULL);
    NEED(cuMemcpyHtoDAsync_v2, address, pinned, 64, NULL);
    tell_waited("in_async_pinned", end);
}

CASE(waiting, ends) {
    open_card();
    const CUstream stream = new_stream(BESIDE);
    CUevent end = long_kernel(stream), other = new_event(0);
    NEED(cuEventRecord, other, stream);
    NEED(cuEventDestroy_v2, other);
    tell_waited("event_destroy", end);
    end = long_kernel(stream);
    NEED(cuStreamDestroy_v2, stream);
    tell_waited("stream_destroy", end);
}

CASE(waiting, modules) {
    CUmodule module;
    open_card();
    spinning();
    CUevent end = long_kernel(new_stream(BESIDE));
    NEED(cuModuleLoadData, &module, spinning_image());
    tell_waited("load", end);
    end = long_kernel(new_stream(BESIDE));
    NEED(cuModuleUnload, module);
    tell_waited("unload_of_another", end);
}

CASE(waiting, graphs) {
    CUgraphExec executable;
    open_card();
    const CUstream stream = new_stream(BESIDE);
    capture(stream, CAPTURE_RELAXED);
    need("cuLaunchKernel", spin(stream, 1));
    const CUgraph graph = captured(stream);
    CUevent end = long_kernel(stream);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    tell_waited("instantiate", end);
    NEED(cuGraphLaunch, executable, stream);
    NEED(cuCtxSynchronize);
    end = long_kernel(stream);
    NEED(cuGraphLaunch, executable, stream);
    tell_waited("launch", end);
    end = long_kernel(stream);
    NEED(cuGraphLaunch, executable, stream);
    NEED(cuGraphExecDestroy, executable);
    tell_waited("destroy_of_a_launched_one", end);
}

/* The number of launches that a program may be ahead of its card; the next one waits. */
CASE(waiting, launch_queue) {
    enum { MOST = 100000, VERY_LONG_MS = 3000 };
    u64 ahead = 0;
    open_card();
    const CUstream stream = new_stream(BESIDE);
    const CUevent end = new_event(0);
    spinning();
    need("cuLaunchKernel", spin(stream, VERY_LONG_MS));
    NEED(cuEventRecord, end, stream);
    while (ahead < MOST && CU(cuEventQuery, end) == CUDA_ERROR_NOT_READY) {
        need("cuLaunchKernel", spin(stream, 0));
        ahead++;
    }
    /* The last launch is the one that waited; the long kernel itself was in the queue, too. */
    tell_number("launches_ahead", ahead < MOST ? ahead : 0);
    TELL("afterwards", cuCtxSynchronize);
}
