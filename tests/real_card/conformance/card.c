/* The start of most cases: a card, streams, and a kernel of known duration. */
#include "common/spin.h"
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

CUdevice open_card(void) {
    CUdevice device;
    CUcontext context;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    NEED(cuDevicePrimaryCtxRetain, &context, device);
    NEED(cuCtxSetCurrent, context);
    return device;
}

/* CUDA and NVML may count cards differently; they agree on the bus id. */
nvmlDevice open_nvml(void) {
    char bus_id[32];
    CUdevice device;
    nvmlDevice found;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    NEED(cuDeviceGetPCIBusId, bus_id, sizeof bus_id, device);
    NEED_NV(nvmlInit_v2);
    NEED_NV(nvmlDeviceGetHandleByPciBusId_v2, bus_id, &found);
    return found;
}

CUstream new_stream(unsigned flags) {
    CUstream stream;
    NEED(cuStreamCreate, &stream, flags);
    return stream;
}

CUevent new_event(unsigned flags) {
    CUevent event;
    NEED(cuEventCreate, &event, flags);
    return event;
}

CUevent recorded(CUstream stream) {
    const CUevent event = new_event(0);
    NEED(cuEventRecord, event, stream);
    return event;
}

CUdeviceptr allocated(size_t bytes) {
    CUdeviceptr address;
    NEED(cuMemAlloc_v2, &address, bytes);
    return address;
}

size_t free_bytes(void) {
    size_t left, total;
    NEED(cuMemGetInfo_v2, &left, &total);
    return left;
}

const char *spinning_image(void) { return spinning_ptx; }

CUfunction spinning(void) {
    static CUfunction function;
    CUmodule module;
    if (function) return function;
    NEED(cuModuleLoadData, &module, spinning_image());
    NEED(cuModuleGetFunction, &function, module, "sim_arg");
    u64 none = 0;
    void *parameters[] = {&none};
    NEED(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL); /* the first launch loads the code */
    NEED(cuCtxSynchronize);
    return function;
}

CUresult spin(CUstream stream, u64 ms) {
    u64 ns = ms * 1000000;
    void *parameters[] = {&ns};
    return CU(cuLaunchKernel, spinning(), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

CUevent long_kernel(CUstream stream) {
    const CUevent end = new_event(0);
    spinning();
    NEED(cuCtxSynchronize);
    need("cuLaunchKernel", spin(stream, LONG_MS));
    NEED(cuEventRecord, end, stream);
    return end;
}

void tell_waited(const char *fact, CUevent end) {
    const CUresult over = CU(cuEventQuery, end);
    if (over == CUDA_SUCCESS || over == CUDA_ERROR_NOT_READY)
        tell(fact, over ? "does not wait" : "waits");
    else
        tell_cuda(fact, over);
    NEED(cuCtxSynchronize);
}

void capture(CUstream stream, CUstreamCaptureMode mode) {
    spinning(); /* code can't be loaded later */
    NEED(cuStreamBeginCapture_v2, stream, mode);
}

CUgraph captured(CUstream stream) {
    CUgraph graph;
    NEED(cuStreamEndCapture, stream, &graph);
    return graph;
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

struct errand {
    void (*run)(void *data);
    void *data;
    CUcontext context;
};

static void *do_errand(void *given) {
    const struct errand *errand = given;
    NEED(cuCtxSetCurrent, errand->context);
    errand->run(errand->data);
    return NULL;
}

void in_thread(void (*run)(void *data), void *data) {
    struct errand errand = {run, data, NULL};
    pthread_t thread;
    NEED(cuCtxGetCurrent, &errand.context);
    if (pthread_create(&thread, NULL, do_errand, &errand)) stop("no thread");
    pthread_join(thread, NULL);
}

void in_process(void (*run)(int channel), int *channel) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) stop("no socket: %m");
    const pid_t pid = fork();
    if (pid < 0) stop("no process: %m");
    close(ends[pid ? 1 : 0]);
    if (!pid) {
        run(ends[1]);
        _exit(0);
    }
    *channel = ends[0];
}

void send_bytes(int channel, const void *bytes, size_t count) {
    if (send(channel, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) stop("the other process is gone");
}

void receive_bytes(int channel, void *bytes, size_t count) {
    if (recv(channel, bytes, count, MSG_WAITALL) != (ssize_t)count) stop("the other process is gone");
}
