/* cuMemAlloc and related calls: sizes, wrong pointers, pitch, copies, which call waits for which work. */
#include "conformance.h"

#include <string.h>

CASE(memory, alloc) {
    CUdeviceptr address = 7;
    open_card();
    TELL("of_0", cuMemAlloc_v2, &address, 0);
    TELL("no_room", cuMemAlloc_v2, NULL, 64);
    tell_yes("refused_leaves_address", address == 7);
    const CUdeviceptr first = allocated(1), second = allocated(1);
    tell_yes("aligned_to_256", first % 256 == 0 && second % 256 == 0);
    tell_yes("aligned_to_512", first % 512 == 0 && second % 512 == 0);
    tell_number("next_one_is_so_far", second > first ? second - first : first - second);
    tell_yes("of_2_mib_is_aligned_to_2_mib", allocated(2 * MIB) % (2 * MIB) == 0);
}

static void tell_cost(const char *fact, size_t bytes) {
    const size_t before = free_bytes();
    allocated(bytes);
    tell_number(fact, before - free_bytes());
}

CASE(memory, costs) {
    open_card();
    tell_cost("first_byte", 1);
    tell_cost("second_byte", 1);
    tell_cost("half_a_mib", MIB / 2);
    tell_cost("1_mib", MIB);
    tell_cost("2_mib", 2 * MIB);
    tell_cost("2_mib_and_a_byte", 2 * MIB + 1);
    tell_cost("3_mib", 3 * MIB);
    tell_cost("100_mib", 100 * MIB);
}

CASE(memory, costs_come_back) {
    open_card();
    const size_t before = free_bytes();
    const CUdeviceptr small = allocated(1), great = allocated(10 * MIB);
    NEED(cuMemFree_v2, great);
    tell_number("after_the_great_one", before - free_bytes());
    NEED(cuMemFree_v2, small);
    tell_number("after_all", before - free_bytes());
}

CASE(memory, free) {
    char here[16];
    open_card();
    const CUdeviceptr address = allocated(4096);
    TELL("null", cuMemFree_v2, 0);
    TELL("nothing", cuMemFree_v2, 4711);
    TELL("middle", cuMemFree_v2, address + 256);
    TELL("beyond", cuMemFree_v2, address + (1ull << 40));
    TELL("stack", cuMemFree_v2, (CUdeviceptr)(uintptr_t)here);
    TELL("once", cuMemFree_v2, address);
    TELL("twice", cuMemFree_v2, address);
}

CASE(memory, without_context) {
    CUdeviceptr address;
    size_t left, total;
    NEED(cuInit, 0);
    TELL("alloc", cuMemAlloc_v2, &address, 64);
    TELL("free", cuMemFree_v2, 4711);
    TELL("info", cuMemGetInfo_v2, &left, &total);
    TELL("copy", cuMemcpyHtoD_v2, 4711, &left, 8);
    TELL("synchronize", cuCtxSynchronize);
}

static void tell_pitch(const char *fact, size_t width, unsigned element) {
    CUdeviceptr address;
    size_t pitch;
    NEED(cuMemAllocPitch_v2, &address, &pitch, width, 10, element);
    tell_number(fact, pitch);
}

CASE(memory, pitch) {
    CUdeviceptr address;
    size_t pitch;
    open_card();
    tell_pitch("of_1", 1, 4);
    tell_pitch("of_512", 512, 8);
    tell_pitch("of_513", 513, 16);
    tell_pitch("of_100000", 100000, 4);
    TELL("element_of_3", cuMemAllocPitch_v2, &address, &pitch, 64, 64, 3);
    TELL("no_width", cuMemAllocPitch_v2, &address, &pitch, 0, 64, 4);
    TELL("no_height", cuMemAllocPitch_v2, &address, &pitch, 64, 0, 4);
}

CASE(memory, range) {
    CUdeviceptr start = 0;
    size_t bytes = 0;
    open_card();
    const CUdeviceptr address = allocated(1000);
    NEED(cuMemGetAddressRange_v2, &start, &bytes, address + 999);
    tell_yes("starts_at_the_allocation", start == address);
    tell_number("bytes_of_1000", bytes);
    TELL("no_start", cuMemGetAddressRange_v2, NULL, &bytes, address);
    TELL("no_bytes", cuMemGetAddressRange_v2, &start, NULL, address);
    TELL("of_nothing", cuMemGetAddressRange_v2, &start, &bytes, 4711);
    NEED(cuMemFree_v2, address);
    TELL("of_freed", cuMemGetAddressRange_v2, &start, &bytes, address);
}

CASE(memory, copies) {
    char text[32] = "some text", back[32] = "";
    open_card();
    const CUdeviceptr one = allocated(4096), two = allocated(4096);
    TELL("in", cuMemcpyHtoD_v2, one, text, sizeof text);
    TELL("over", cuMemcpyDtoD_v2, two, one, sizeof text);
    TELL("out", cuMemcpyDtoH_v2, back, two, sizeof back);
    tell_yes("same", !memcmp(text, back, sizeof text));
    TELL("of_0", cuMemcpyHtoD_v2, one, text, 0);
    TELL("to_nothing", cuMemcpyHtoD_v2, 4711, text, 8);
    TELL("no_source", cuMemcpyHtoD_v2, one, NULL, 8);
    TELL("set_8", cuMemsetD8_v2, one, 0xab, 4096);
    TELL("set_16_at_odd", cuMemsetD16_v2, one + 1, 1, 8);
    TELL("set_32_at_2", cuMemsetD32_v2, one + 2, 1, 8);
    TELL("set_of_0", cuMemsetD8_v2, one, 0, 0);
    NEED(cuMemcpyDtoH_v2, back, one + 4064, sizeof back);
    tell_yes("set_to_the_end", (unsigned char)back[31] == 0xab);
    TELL("afterwards", cuCtxSynchronize);
}

/* Copies far beyond the end of an allocation, further than any block. */
CASE(memory, copy_beyond) {
    static char much[16 * MIB];
    open_card();
    const CUdeviceptr address = allocated(4 * MIB);
    TELL("out", cuMemcpyDtoH_v2, much, address, sizeof much);
    TELL("set", cuMemsetD8_v2, address, 0, 64 * MIB);
    TELL("afterwards", cuCtxSynchronize);
}

static void tell_pointer(const char *fact, CUpointer_attribute attribute, CUdeviceptr address) {
    u64 value = 0; /* attributes have 1 to 8 bytes */
    const CUresult code = CU(cuPointerGetAttribute, &value, attribute, address);
    if (code)
        tell_cuda(fact, code);
    else
        tell_number(fact, value);
}

CASE(memory, pointers) {
    static char plain[16];
    open_card();
    const CUdeviceptr address = allocated(4096);
    CUdeviceptr start = 0;
    tell_pointer("type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 8);
    tell_pointer("managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    tell_pointer("device", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    tell_pointer("bytes", CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 8);
    tell_pointer("mapped", CU_POINTER_ATTRIBUTE_MAPPED, address);
    NEED(cuPointerGetAttribute, &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 8);
    tell_yes("start", start == address);
    tell_pointer("type_of_plain", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)plain);
    tell_pointer("unknown_attribute", (CUpointer_attribute)999, address);
    NEED(cuMemFree_v2, address);
    tell_pointer("type_of_freed", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
}
