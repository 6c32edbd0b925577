/* Out of memory, and the card afterwards. */
#include "conformance.h"

CASE(full, asked_too_much) {
    size_t total;
    CUdeviceptr address = 7;
    const CUdevice device = open_card();
    NEED(cuDeviceTotalMem_v2, &total, device);
    const size_t before = free_bytes();
    TELL("all_of_the_card", cuMemAlloc_v2, &address, total);
    TELL("total_twice", cuMemAlloc_v2, &address, 2 * total);
    TELL("2_to_50", cuMemAlloc_v2, &address, 1ull << 50);
    TELL("2_to_64_less_1", cuMemAlloc_v2, &address, SIZE_MAX);
    TELL("async", cuMemAllocAsync, &address, 2 * total, NULL);
    tell_yes("leaves_address", address == 7);
    tell_yes("leaves_free_bytes", free_bytes() == before);
    TELL("afterwards", cuMemFree_v2, allocated(64 * MIB));
    need("cuLaunchKernel", spin(NULL, 1));
    TELL("kernel_afterwards", cuCtxSynchronize);
}

CASE(full, virtual_memory) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    size_t total;
    const CUdevice device = open_card();
    NEED(cuDeviceTotalMem_v2, &total, device);
    properties.location.id = device;
    TELL("create", cuMemCreate, &handle, (total / (2 * MIB) + 1) * (2 * MIB), &properties, 0);
}

/* Allocates everything in ever smaller parts; from then on every allocation is refused until one is freed. */
CASE(full, to_the_last_block) {
    enum { PARTS = 4096 };
    static CUdeviceptr part[PARTS];
    int parts = 0;
    open_card();
    spinning();
    for (size_t bytes = 1ull << 36; bytes >= 2 * MIB; bytes /= 2)
        while (parts < PARTS && CU(cuMemAlloc_v2, &part[parts], bytes) == CUDA_SUCCESS) parts++;
    CUdeviceptr address;
    const CUresult refused = CU(cuMemAlloc_v2, &address, 2 * MIB);
    tell_cuda("next_block", refused);
    tell_yes("less_than_2_mib_are_left", free_bytes() < 2 * MIB);
    TELL("async", cuMemAllocAsync, &address, 64 * MIB, NULL);
    need("cuLaunchKernel", spin(NULL, 1));
    TELL("kernel_runs", cuCtxSynchronize);
    NEED(cuMemFree_v2, part[--parts]);
    TELL("after_a_free", cuMemAlloc_v2, &address, 2 * MIB);
}
