/* Before a context: initialisation, cards, names of errors. */
#include "conformance.h"

#include <string.h>

CASE(init, before) {
    int number;
    CUdevice device;
    CUdeviceptr address;
    CUcontext context;
    TELL("count", cuDeviceGetCount, &number);
    TELL("device", cuDeviceGet, &device, 0);
    TELL("current_context", cuCtxGetCurrent, &context);
    TELL("alloc", cuMemAlloc_v2, &address, 64);
    TELL("free", cuMemFree_v2, 0);
    TELL("driver_version", cuDriverGetVersion, &number);
    TELL("retain", cuDevicePrimaryCtxRetain, &context, 0);
}

CASE(init, flags) {
    TELL("unknown_flag", cuInit, 1);
    TELL("first", cuInit, 0);
    TELL("again", cuInit, 0);
}

/* None of the parent's state survives in a child. */
static void in_child(int channel) {
    CUdeviceptr address;
    CUcontext context;
    CUdevice device;
    int ready;
    receive_bytes(channel, &ready, sizeof ready);
    TELL("alloc", cuMemAlloc_v2, &address, 64);
    TELL("init", cuInit, 0);
    TELL("device", cuDeviceGet, &device, 0);
    TELL("current_context", cuCtxGetCurrent, &context);
    TELL("retain", cuDevicePrimaryCtxRetain, &context, 0);
    send_bytes(channel, &ready, sizeof ready);
}

CASE(fork, child_of_a_used_context) {
    int channel, ready = 1;
    open_card();
    const CUdeviceptr address = allocated(64);
    in_process(in_child, &channel);
    send_bytes(channel, &ready, sizeof ready);
    receive_bytes(channel, &ready, sizeof ready);
    TELL("parent_goes_on", cuMemFree_v2, address);
}

static void child_of_a_fresh_process(int channel) {
    int ready = 1;
    open_card();
    TELL("child_allocates", cuMemFree_v2, allocated(64));
    send_bytes(channel, &ready, sizeof ready);
}

CASE(fork, before_init) {
    int channel, ready;
    in_process(child_of_a_fresh_process, &channel);
    receive_bytes(channel, &ready, sizeof ready);
    open_card();
    TELL("parent_allocates", cuMemFree_v2, allocated(64));
}

CASE(cards, get) {
    int count, number;
    CUdevice device;
    NEED(cuInit, 0);
    NEED(cuDeviceGetCount, &count);
    TELL("negative", cuDeviceGet, &device, -1);
    TELL("too_great", cuDeviceGet, &device, count);
    TELL("no_room", cuDeviceGet, NULL, 0);
    NEED(cuDeviceGet, &device, 0);
    TELL("unknown_attribute", cuDeviceGetAttribute, &number, 99999, device);
    TELL("attribute_of_no_card", cuDeviceGetAttribute, &number, 1, count);
    TELL("attribute_no_room", cuDeviceGetAttribute, NULL, 1, device);
}

static int attribute(int which, CUdevice device) {
    int value = -1;
    NEED(cuDeviceGetAttribute, &value, which, device);
    return value;
}

CASE(cards, attributes) {
    CUdevice device;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    tell_number("warp", (u64)attribute(10, device));
    tell_number("threads_per_block", (u64)attribute(1, device));
    tell_number("unified_addressing", (u64)attribute(41, device));
    tell_number("managed", (u64)attribute(83, device));
    tell_number("virtual_memory", (u64)attribute(102, device));
    tell_number("pools", (u64)attribute(115, device));
    tell_number("host_register", (u64)attribute(99, device));
    tell_number("texture_pitch_alignment", (u64)attribute(51, device));
    tell_number("texture_alignment", (u64)attribute(14, device));
    tell_yes("copies_beside_kernels", attribute(40, device) >= 1);
    tell_yes("kernels_overlap", attribute(31, device) == 1);
}

CASE(cards, bus_id) {
    char text[32];
    CUdevice device, found = -1;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    TELL("room_of_0", cuDeviceGetPCIBusId, text, 0, device);
    TELL("room_of_4", cuDeviceGetPCIBusId, text, 4, device);
    NEED(cuDeviceGetPCIBusId, text, sizeof text, device);
    tell_number("length", strlen(text));
    TELL("back", cuDeviceGetByPCIBusId, &found, text);
    tell_yes("same_card", found == device);
    TELL("of_nothing", cuDeviceGetByPCIBusId, &found, "ffff:ff:1f.0");
    TELL("no_address", cuDeviceGetByPCIBusId, &found, "card");
}

CASE(cards, name) {
    char name[8] = "#######";
    CUdevice device;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    TELL("room_of_0", cuDeviceGetName, name, 0, device);
    TELL("room_of_3", cuDeviceGetName, name, 3, device);
    tell_yes("room_of_3_ends", name[2] == '\0' && name[3] == '#');
}

CASE(cards, memory) {
    size_t total, left, of_context;
    const CUdevice device = open_card();
    NEED(cuDeviceTotalMem_v2, &total, device);
    NEED(cuMemGetInfo_v2, &left, &of_context);
    tell_yes("total_is_the_same_everywhere", total == of_context);
    tell_yes("context_costs", left < total);
    TELL("no_room_for_total", cuMemGetInfo_v2, &left, NULL);
    TELL("no_room_for_free", cuMemGetInfo_v2, NULL, &total);
}

CASE(errors, names) {
    const char *text = "untouched";
    int version = 0;
    NEED(cuInit, 0);
    NEED(cuGetErrorName, CUDA_ERROR_OUT_OF_MEMORY, &text);
    tell("of_2", "%s", text);
    NEED(cuGetErrorName, CUDA_ERROR_CAPTURED_EVENT, &text);
    tell("of_907", "%s", text);
    TELL("of_nothing", cuGetErrorName, (CUresult)123456, &text);
    tell_yes("of_nothing_is_null", !text);
    text = "untouched";
    TELL("text_of_nothing", cuGetErrorString, (CUresult)123456, &text);
    tell_yes("text_of_nothing_is_null", !text);
    NEED(cuDriverGetVersion, &version);
    tell_yes("version_is_thousands_and_tens", version >= 11000 && version % 10 == 0);
    TELL("version_no_room", cuDriverGetVersion, NULL);
}
