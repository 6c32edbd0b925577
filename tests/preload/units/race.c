/* Threads allocate and free memory by every path at once, with a driver and a broker made of a few arrays:
 *
 *     race THREADS TURNS LIMIT_MIB FAILS_EACH SEED
 *
 * Exits with 0 if the driver never held more than was lent, and finally nothing is used. Also built with sanitizers.
 */
#include "units.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

CUresult hook_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult hook_cuMemFree_v2(CUdeviceptr address);
CUresult hook_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult hook_cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult hook_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *like,
                          unsigned long long flags);
CUresult hook_cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult hook_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags);
CUresult hook_cuMemUnmap(CUdeviceptr address, size_t bytes);

#define MAPPED_AT(handle) ((1ull << 46) + (handle) * BLOCK_BYTES)

enum { HELD = 8 };

static unsigned turns;
static _Atomic uint64_t refusals, successes, wrong;
static _Atomic bool over;

struct held {
    enum { NOTHING, MEMORY, POOL, VIRTUAL } what;
    uint64_t address;
};

static unsigned roll(unsigned *dice) {
    *dice = *dice * 1664525u + 1013904223u;
    return *dice >> 8;
}

static void count(CUresult result) {
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        refusals++;
    else if (result == CUDA_SUCCESS)
        successes++;
    else
        wrong++;
}

/* A driver that fails on purpose is called again until it succeeds. */
#define INSIST(call)                                                                                                   \
    while ((call) != CUDA_SUCCESS) {                                                                                   \
    }

static CUresult take_virtual(struct held *held) {
    const CUmemAllocationProp like = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    TRY(hook_cuMemCreate(&handle, BLOCK_BYTES, &like, 0));
    INSIST(hook_cuMemMap(MAPPED_AT(handle), BLOCK_BYTES, 0, handle, 0));
    INSIST(hook_cuMemRelease(handle));
    held->address = MAPPED_AT(handle);
    return CUDA_SUCCESS;
}

static void take(struct held *held, unsigned *dice) {
    const unsigned way = roll(dice) % 4;
    CUresult result;
    CUdeviceptr address = 0;
    if (way == 0)
        result = hook_cuMemAlloc_v2(&address, 1 + roll(dice) % 60000);
    else if (way == 1)
        result = hook_cuMemAlloc_v2(&address, 100000 + roll(dice) % 9000000);
    else if (way == 2)
        result = hook_cuMemAllocAsync(&address, 1 + roll(dice) % 40000000, NULL);
    else
        result = take_virtual(held);
    count(result);
    if (result != CUDA_SUCCESS) return;
    held->what = way < 2 ? MEMORY : way == 2 ? POOL : VIRTUAL;
    if (way < 3) held->address = address;
}

static void give(struct held *held) {
    if (held->what == MEMORY) INSIST(hook_cuMemFree_v2(held->address));
    if (held->what == POOL) INSIST(hook_cuMemFreeAsync(held->address, NULL));
    if (held->what == VIRTUAL) INSIST(hook_cuMemUnmap(held->address, BLOCK_BYTES));
    held->what = NOTHING;
}

static void *work(void *seed) {
    struct held held[HELD] = {0};
    unsigned dice = (unsigned)(uintptr_t)seed;
    for (unsigned turn = 0; turn < turns; turn++) {
        struct held *one = &held[roll(&dice) % HELD];
        if (one->what)
            give(one);
        else
            take(one, &dice);
    }
    for (unsigned n = 0; n < HELD; n++) give(&held[n]);
    return NULL;
}

/* As the listening thread does. */
static void *disturb(void *unused) {
    while (!atomic_load(&over)) {
        reserves_reread(0);
        account_keep(0, 0);
        accounts_hint(&(struct wire){.what = WIRE_RECALL});
        accounts_hint(&(struct wire){.what = WIRE_REPORT, .number = 1});
        os_sleep(OS_MS);
    }
    return unused;
}

int main(int arguments, char **argument) {
    if (arguments != 6) return 2;
    const unsigned threads = (unsigned)atoi(argument[1]), seed = (unsigned)atoi(argument[5]);
    pthread_t thread[64], disturbing;
    if (threads > 64) return 2;
    turns = (unsigned)atoi(argument[2]);
    atomic_store(&broker_limit, (uint64_t)atoi(argument[3]) << 20);
    atomic_store(&driver_fails_each, (uint64_t)atoi(argument[4]));
    pthread_create(&disturbing, NULL, disturb, NULL);
    for (unsigned n = 0; n < threads; n++) pthread_create(&thread[n], NULL, work, (void *)(uintptr_t)(seed + n));
    for (unsigned n = 0; n < threads; n++) pthread_join(thread[n], NULL);
    atomic_store(&over, true);
    pthread_join(disturbing, NULL);
    reserves_shrink(0);
    printf("{\"taken\": %llu, \"refused\": %llu, \"wrong\": %llu, \"peak\": %llu, \"used\": %llu, \"held\": %llu}\n",
           (unsigned long long)successes, (unsigned long long)refusals, (unsigned long long)wrong,
           (unsigned long long)driver_peak, (unsigned long long)account_used(0), (unsigned long long)driver_holds());
    const bool right = !wrong && !account_used(0) && !driver_holds() && driver_peak <= broker_limit;
    return right ? 0 : 1;
}
