/* Stream-ordered memory: reserved, used and freed by pools. */
#include "conformance.h"

static u64 attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    u64 value = 0;
    NEED(cuMemPoolGetAttribute, pool, which, &value);
    return value;
}

static CUmemoryPool default_pool(CUdevice device) {
    CUmemoryPool pool;
    NEED(cuDeviceGetDefaultMemPool, &pool, device);
    return pool;
}

static CUdeviceptr taken(size_t bytes, CUstream stream) {
    CUdeviceptr address;
    NEED(cuMemAllocAsync, &address, bytes, stream);
    return address;
}

static void tell_pool(const char *reserved, const char *used, CUmemoryPool pool) {
    tell_number(reserved, attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    tell_number(used, attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
}

CASE(pools, at_first) {
    CUmemoryPool current;
    const CUdevice device = open_card();
    const CUmemoryPool pool = default_pool(device);
    NEED(cuDeviceGetMemPool, &current, device);
    tell_yes("default_is_current", current == pool);
    tell_number("threshold", attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
    tell_pool("reserved", "used", pool);
    int follows = -1;
    NEED(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follows);
    tell("reuse_follows_events", "%d", follows);
    TELL("unknown_attribute", cuMemPoolGetAttribute, pool, (CUmemPool_attribute)99, &current);
}

CASE(pools, growth) {
    const CUmemoryPool pool = default_pool(open_card());
    const size_t before = free_bytes();
    taken(1, NULL);
    tell_pool("after_a_byte_reserved", "after_a_byte_used", pool);
    tell_yes("reserved_is_what_the_card_lost",
             before - free_bytes() == attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    taken(MIB, NULL);
    tell_pool("after_1_mib_reserved", "after_1_mib_used", pool);
    taken(33 * MIB, NULL);
    tell_pool("after_33_mib_reserved", "after_33_mib_used", pool);
}

CASE(pools, release) {
    const CUmemoryPool pool = default_pool(open_card());
    u64 threshold = UINT64_MAX;
    NEED(cuMemFreeAsync, taken(MIB, NULL), NULL);
    NEED(cuStreamSynchronize, NULL);
    tell_pool("synchronized_reserved", "synchronized_used", pool);
    NEED(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    NEED(cuMemFreeAsync, taken(MIB, NULL), NULL);
    NEED(cuStreamSynchronize, NULL);
    tell_yes("below_threshold_stays", attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > 0);
    NEED(cuMemPoolTrimTo, pool, 0);
    tell_pool("trimmed_reserved", "trimmed_used", pool);
}

CASE(pools, high_water) {
    const CUmemoryPool pool = default_pool(open_card());
    u64 mark = 1;
    NEED(cuMemFreeAsync, taken(40 * MIB, NULL), NULL);
    NEED(cuStreamSynchronize, NULL);
    tell_number("used_high", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
    TELL("set_to_1", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &mark);
    TELL("set_current", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &mark);
    mark = 0;
    TELL("set_to_0", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &mark);
    tell_number("used_high_after", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
}

CASE(pools, order) {
    open_card();
    const CUstream one = new_stream(CU_STREAM_NON_BLOCKING), two = new_stream(CU_STREAM_NON_BLOCKING);
    const CUdeviceptr address = taken(20 * MIB, one);
    const CUevent end = long_kernel(one);
    NEED(cuMemFreeAsync, address, one);
    const CUdeviceptr other = taken(20 * MIB, two), again = taken(20 * MIB, one);
    tell_waited("asking", end);
    tell_yes("another_stream_has_it_before_its_free", other == address);
    tell_yes("the_same_stream_has_it_before_its_free", again == address);
}

CASE(pools, wrong) {
    CUdeviceptr address = 0;
    CUmemoryPool pool = default_pool(open_card());
    TELL("of_0", cuMemAllocAsync, &address, 0, NULL);
    TELL("no_room", cuMemAllocAsync, NULL, 64, NULL);
    address = taken(MIB, NULL);
    TELL("free_of_middle", cuMemFreeAsync, address + 512, NULL);
    TELL("free_of_nothing", cuMemFreeAsync, 4711, NULL);
    TELL("free_at_once", cuMemFree_v2, address);
    TELL("free_again", cuMemFreeAsync, address, NULL);
    TELL("free_of_plain_memory", cuMemFreeAsync, allocated(MIB), NULL);
    TELL("destroy_default", cuMemPoolDestroy, pool);
    TELL("choose_none", cuDeviceSetMemPool, 0, NULL);
}

static CUmemPoolProps like_default(CUdevice device) {
    return (CUmemPoolProps){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

CASE(pools, own) {
    CUmemoryPool pool;
    CUdeviceptr address;
    const CUdevice device = open_card();
    CUmemPoolProps like = like_default(device);
    const size_t before = free_bytes();
    TELL("create", cuMemPoolCreate, &pool, &like);
    tell_number("costs", before - free_bytes());
    TELL("take", cuMemAllocFromPoolAsync, &address, MIB, pool, NULL);
    TELL("destroy_in_use", cuMemPoolDestroy, pool);
    TELL("free_after_destroy", cuMemFreeAsync, address, NULL);
    TELL("afterwards", cuCtxSynchronize);
    tell_number("left_behind", before - free_bytes());
    like.location.id = 99;
    TELL("on_no_card", cuMemPoolCreate, &pool, &like);
    like = like_default(device), like.type = 0;
    TELL("of_no_type", cuMemPoolCreate, &pool, &like);
}

CASE(pools, bounded) {
    CUmemoryPool pool;
    CUdeviceptr address;
    CUmemPoolProps like = like_default(open_card());
    like.most_bytes = 64 * MIB;
    NEED(cuMemPoolCreate, &pool, &like);
    TELL("within", cuMemAllocFromPoolAsync, &address, 60 * MIB, pool, NULL);
    TELL("beyond", cuMemAllocFromPoolAsync, &address, 60 * MIB, pool, NULL);
}
