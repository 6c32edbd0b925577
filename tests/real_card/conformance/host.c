/* Host memory that the card can access: pinned, registered, managed. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

CASE(host, alloc) {
    void *memory = NULL, *portable;
    CUdeviceptr device = 0;
    unsigned flags = 99;
    open_card();
    const size_t before = free_bytes();
    TELL("of_0", cuMemHostAlloc, &memory, 0, 0);
    TELL("unknown_flag", cuMemHostAlloc, &memory, 64, 64);
    NEED(cuMemHostAlloc, &memory, 4 * MIB, 0);
    tell_number("costs_the_card", before - free_bytes());
    NEED(cuMemHostGetDevicePointer_v2, &device, memory, 0);
    tell_yes("one_address_for_both", device == (CUdeviceptr)(uintptr_t)memory);
    NEED(cuMemHostGetFlags, &flags, memory);
    tell_number("flags_of_0", flags);
    NEED(cuMemHostAlloc, &portable, 64, 3);
    NEED(cuMemHostGetFlags, &flags, portable);
    tell_number("flags_of_3", flags);
    TELL("flags_of_nothing", cuMemHostGetFlags, &flags, &flags);
    TELL("free", cuMemFreeHost, memory);
    TELL("free_of_nothing", cuMemFreeHost, &flags);
    TELL("free_of_the_cards", cuMemFreeHost, (void *)(uintptr_t)allocated(64));
    TELL("free_as_the_cards", cuMemFree_v2, (CUdeviceptr)(uintptr_t)portable);
}

CASE(host, registered) {
    CUdeviceptr device = 0;
    char *memory = aligned_alloc(4096, 4 * MIB);
    if (!memory) stop("no memory");
    memset(memory, 1, 4 * MIB);
    open_card();
    TELL("of_0", cuMemHostRegister_v2, memory, 0, 0);
    TELL("of_null", cuMemHostRegister_v2, NULL, 4096, 0);
    TELL("register", cuMemHostRegister_v2, memory, MIB, 3);
    TELL("again", cuMemHostRegister_v2, memory, MIB, 3);
    TELL("overlapping", cuMemHostRegister_v2, memory + MIB / 2, MIB, 3);
    TELL("beside", cuMemHostRegister_v2, memory + 2 * MIB, MIB, 3);
    NEED(cuMemHostGetDevicePointer_v2, &device, memory, 0);
    tell_yes("one_address_for_both", device == (CUdeviceptr)(uintptr_t)memory);
    TELL("free_of_registered", cuMemFreeHost, memory);
    TELL("unregister_middle", cuMemHostUnregister, memory + 4096);
    TELL("unregister", cuMemHostUnregister, memory);
    TELL("unregister_again", cuMemHostUnregister, memory);
}

CASE(host, managed) {
    CUdeviceptr address = 0;
    u32 is_managed = 0;
    open_card();
    const size_t before = free_bytes();
    TELL("of_0", cuMemAllocManaged, &address, 0, 1);
    TELL("no_flag", cuMemAllocManaged, &address, 64, 0);
    TELL("unknown_flag", cuMemAllocManaged, &address, 64, 8);
    NEED(cuMemAllocManaged, &address, 8 * MIB, 1);
    tell_number("costs_untouched", before - free_bytes());
    NEED(cuPointerGetAttribute, &is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    tell_number("is_managed", is_managed);
    NEED(cuMemsetD8_v2, address, 7, 16);
    NEED(cuCtxSynchronize);
    char *here = (char *)(uintptr_t)address;
    tell_yes("host_reads_what_the_card_wrote", here[15] == 7);
    here[0] = 9;
    char back = 0;
    NEED(cuMemcpyDtoH_v2, &back, address, 1);
    tell_yes("card_reads_what_the_host_wrote", back == 9);
    TELL("free", cuMemFree_v2, address);
    tell_number("left_behind", before - free_bytes());
}
