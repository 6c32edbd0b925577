/* Memory without addresses, addresses without memory, and mappings. */
#include "conformance.h"

enum { UNIT = 2 * MIB, RECOMMENDED = 1 };

static CUmemAllocationProp on_card(void) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
}

static CUmemGenericAllocationHandle created(size_t bytes) {
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp properties = on_card();
    NEED(cuMemCreate, &handle, bytes, &properties, 0);
    return handle;
}

static CUdeviceptr reserved(size_t bytes) {
    CUdeviceptr address;
    NEED(cuMemAddressReserve, &address, bytes, 0, 0, 0);
    return address;
}

static const CUmemAccessDesc both_ways = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_READWRITE};

CASE(virtual, sizes) {
    size_t bytes;
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp properties = on_card();
    open_card();
    NEED(cuMemGetAllocationGranularity, &bytes, &properties, 0);
    tell_number("granularity", bytes);
    NEED(cuMemGetAllocationGranularity, &bytes, &properties, RECOMMENDED);
    tell_number("recommended", bytes);
    TELL("create_1_mib", cuMemCreate, &handle, MIB, &properties, 0);
    TELL("create_0", cuMemCreate, &handle, 0, &properties, 0);
    TELL("create_with_flags", cuMemCreate, &handle, UNIT, &properties, 1);
    TELL("reserve_1_mib", cuMemAddressReserve, &address, MIB, 0, 0, 0);
    TELL("reserve_4_kib", cuMemAddressReserve, &address, 4096, 0, 0, 0);
    TELL("reserve_0", cuMemAddressReserve, &address, 0, 0, 0, 0);
    TELL("reserve_at_3_mib", cuMemAddressReserve, &address, UNIT, 3 * MIB, 0, 0);
    NEED(cuMemAddressReserve, &address, UNIT, 1 << 25, 0, 0);
    tell_yes("aligned_as_asked", address % (1 << 25) == 0);
}

CASE(virtual, properties) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = on_card();
    open_card();
    properties.type = 0;
    TELL("no_type", cuMemCreate, &handle, UNIT, &properties, 0);
    properties = on_card(), properties.location.type = 0;
    TELL("no_place", cuMemCreate, &handle, UNIT, &properties, 0);
    properties = on_card(), properties.location.id = 99;
    TELL("no_card", cuMemCreate, &handle, UNIT, &properties, 0);
    TELL("no_properties", cuMemCreate, &handle, UNIT, NULL, 0);
}

CASE(virtual, costs) {
    open_card();
    const size_t before = free_bytes();
    const CUdeviceptr address = reserved(3 * UNIT);
    tell_number("address", before - free_bytes());
    const CUmemGenericAllocationHandle handle = created(3 * UNIT);
    tell_number("memory", before - free_bytes());
    NEED(cuMemMap, address, 3 * UNIT, 0, handle, 0);
    NEED(cuMemRelease, handle);
    tell_number("released_but_mapped", before - free_bytes());
    NEED(cuMemUnmap, address, 3 * UNIT);
    tell_number("unmapped", before - free_bytes());
}

CASE(virtual, mapping) {
    open_card();
    const CUdeviceptr address = reserved(2 * UNIT);
    const CUmemGenericAllocationHandle handle = created(UNIT);
    TELL("no_address", cuMemMap, 0, UNIT, 0, handle, 0);
    TELL("odd_address", cuMemMap, address + 4096, UNIT, 0, handle, 0);
    TELL("with_flags", cuMemMap, address, UNIT, 0, handle, 1);
    TELL("more_than_there_is", cuMemMap, address, 2 * UNIT, 0, handle, 0);
    TELL("map", cuMemMap, address, UNIT, 0, handle, 0);
    TELL("again", cuMemMap, address, UNIT, 0, handle, 0);
    TELL("the_same_elsewhere", cuMemMap, address + UNIT, UNIT, 0, handle, 0);
    TELL("free_of_mapped", cuMemAddressFree, address, 2 * UNIT);
    TELL("unmap_both", cuMemUnmap, address, 2 * UNIT);
    TELL("unmap_again", cuMemUnmap, address, UNIT);
    TELL("free_of_half", cuMemAddressFree, address, UNIT);
    TELL("free", cuMemAddressFree, address, 2 * UNIT);
}

CASE(virtual, part_of_a_mapping) {
    open_card();
    const CUdeviceptr address = reserved(2 * UNIT);
    NEED(cuMemMap, address, 2 * UNIT, 0, created(2 * UNIT), 0);
    TELL("unmap_of_half", cuMemUnmap, address, UNIT);
    TELL("access_of_half", cuMemSetAccess, address, UNIT, &both_ways, 1);
}

CASE(virtual, access) {
    u64 flags = 99;
    char text[8] = "text";
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    open_card();
    const CUdeviceptr address = reserved(UNIT);
    TELL("of_unmapped", cuMemSetAccess, address, UNIT, &both_ways, 1);
    NEED(cuMemMap, address, UNIT, 0, created(UNIT), 0);
    NEED(cuMemGetAccess, &flags, &here, address);
    tell_number("at_first", flags);
    TELL("grant", cuMemSetAccess, address, UNIT, &both_ways, 1);
    NEED(cuMemGetAccess, &flags, &here, address);
    tell_number("granted", flags);
    TELL("copy", cuMemcpyHtoD_v2, address, text, sizeof text);
    TELL("free_as_plain", cuMemFree_v2, address);
}

/* A real driver may treat this as a fault of the card. */
CASE(virtual, copy_without_access) {
    char text[8] = "text";
    open_card();
    const CUdeviceptr address = reserved(UNIT);
    NEED(cuMemMap, address, UNIT, 0, created(UNIT), 0);
    TELL("copy", cuMemcpyHtoD_v2, address, text, sizeof text);
    TELL("afterwards", cuCtxSynchronize);
}

CASE(virtual, handles) {
    CUmemGenericAllocationHandle again = 0;
    open_card();
    const CUmemGenericAllocationHandle handle = created(UNIT);
    const CUdeviceptr address = reserved(UNIT);
    NEED(cuMemMap, address, UNIT, 0, handle, 0);
    NEED(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(address + 100));
    tell_yes("retained_is_the_same", again == handle);
    TELL("retain_of_plain_memory", cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)allocated(64));
    TELL("release", cuMemRelease, handle);
    TELL("release_retained", cuMemRelease, handle);
    TELL("release_of_nothing", cuMemRelease, 0);
}
