/* Allocates memory of every kind that the driver has, or of one kind.
 *
 * `--kind random` does `count` random operations of every kind for each line that it reads, keeps only allocations
 * whose size on the card is known exactly, reports their total, and waits for the next line; it ends at end of input.
 * So its runner can compare accounts with what the card reports while nothing changes.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>

enum { MOST_HELD = 48, MIB = 1 << 20, GRANULE = 2 * MIB };

struct held {
    const struct kind *kind; /* NULL: unused */
    u64 bytes;
    CUdeviceptr address;
    CUmemGenericAllocationHandle memory;
    CUarray array;
};

struct kind {
    const char *name;
    CUresult (*take)(struct held *held, u64 bytes);
    CUresult (*give)(struct held *held);
    bool exact; /* takes exactly `bytes`, a multiple of GRANULE, of the card, and frees them at once */
};

static u64 card;

/* ---- the kinds --------------------------------------------------------------------------------------------------- */

static CUresult take_plain(struct held *held, u64 bytes) { return CU(cuMemAlloc_v2, &held->address, bytes); }

static CUresult take_small(struct held *held, u64 bytes) {
    return CU(cuMemAlloc_v2, &held->address, 1 + bytes % (MIB / 2));
}

static CUresult take_pitch(struct held *held, u64 bytes) {
    size_t pitch;
    return CU(cuMemAllocPitch_v2, &held->address, &pitch, MIB / 1024, bytes / (MIB / 1024), 4);
}

static CUresult take_managed(struct held *held, u64 bytes) { return CU(cuMemAllocManaged, &held->address, bytes, 1); }

static CUresult give_plain(struct held *held) { return CU(cuMemFree_v2, held->address); }

static CUresult take_pool(struct held *held, u64 bytes) { return CU(cuMemAllocAsync, &held->address, bytes, NULL); }

static CUresult give_pool(struct held *held) { return CU(cuMemFreeAsync, held->address, NULL); }

static CUresult take_array(struct held *held, u64 bytes) {
    const CUDA_ARRAY3D_DESCRIPTOR floats = {
        .width = 1024, .height = bytes / 4096, .format = CU_AD_FORMAT_FLOAT, .channels = 1};
    return CU(cuArray3DCreate_v2, &held->array, &floats);
}

static CUresult give_array(struct held *held) { return CU(cuArrayDestroy, held->array); }

static CUresult take_mapped(struct held *held, u64 bytes) {
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, (int)card};
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    const CUmemAccessDesc access = {here, CU_MEM_ACCESS_READWRITE};
    const CUresult result = CU(cuMemCreate, &held->memory, bytes, &properties, 0);
    if (result != CUDA_SUCCESS) return result;
    NEED(cuMemAddressReserve, &held->address, bytes, 0, 0, 0);
    NEED(cuMemMap, held->address, bytes, 0, held->memory, 0);
    NEED(cuMemSetAccess, held->address, bytes, &access, 1);
    return CUDA_SUCCESS;
}

static CUresult give_mapped(struct held *held) {
    NEED(cuMemUnmap, held->address, held->bytes);
    NEED(cuMemAddressFree, held->address, held->bytes);
    return CU(cuMemRelease, held->memory);
}

static const struct kind kinds[] = {
    {"large", take_plain, give_plain, true},    {"small", take_small, give_plain, false},
    {"pitch", take_pitch, give_plain, true},    {"managed", take_managed, give_plain, true},
    {"pool", take_pool, give_pool, false},      {"array", take_array, give_array, false},
    {"mapped", take_mapped, give_mapped, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static CUresult take(struct held *held, const struct kind *kind, u64 bytes) {
    *held = (struct held){.bytes = bytes};
    const CUresult result = kind->take(held, bytes);
    if (result == CUDA_SUCCESS) held->kind = kind, outcome.launches++;
    return result;
}

static void give(struct held *held) {
    require(held->kind->give(held), held->kind->name);
    held->kind = NULL;
}

/* Pools keep freed memory until they are trimmed. */
static void trim(void) {
    CUmemoryPool pool;
    NEED(cuCtxSynchronize);
    NEED(cuDeviceGetMemPool, &pool, (int)card);
    NEED(cuMemPoolTrimTo, pool, 0);
}

static u64 on_card(void) {
    size_t free_bytes, total;
    NEED(cuMemGetInfo_v2, &free_bytes, &total);
    return total - free_bytes;
}

/* ---- random operations ------------------------------------------------------------------------------------------- */

static void operate(struct held *held, u64 *state, u64 most_bytes) {
    struct held *one = &held[next_random(state) % MOST_HELD];
    if (one->kind) {
        give(one);
        return;
    }
    const struct kind *kind = &kinds[next_random(state) % KINDS];
    const CUresult result = take(one, kind, GRANULE * (1 + next_random(state) % (most_bytes / GRANULE)));
    if (result != CUDA_ERROR_OUT_OF_MEMORY) require(result, kind->name); /* a full card is expected */
}

static u64 kept(struct held *held) {
    u64 bytes = 0;
    for (int i = 0; i < MOST_HELD; i++) {
        if (held[i].kind && !held[i].kind->exact) give(&held[i]);
        if (held[i].kind) bytes += held[i].bytes;
    }
    trim();
    return bytes;
}

static void operate_at_random(const struct options *options) {
    static struct held held[MOST_HELD];
    const u64 operations = options->count ? options->count : 100;
    u64 state = options->seed;
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n') continue;
        for (u64 i = 0; i < operations; i++) operate(held, &state, options->mib * MIB);
        printf("{\"holds\":%llu,\"operations\":%llu}\n", (unsigned long long)kept(held),
               (unsigned long long)operations);
        fflush(stdout);
    }
    for (int i = 0; i < MOST_HELD; i++)
        if (held[i].kind) give(&held[i]);
}

/* ---- one of each ------------------------------------------------------------------------------------------------- */

static void hold(const struct options *options) {
    struct held held[KINDS] = {0};
    int found = 0;
    const double start = now_s();
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(options->kind, "all") && strcmp(options->kind, kinds[i].name)) continue;
        const u64 before = on_card();
        require(take(&held[found++], &kinds[i], options->mib * MIB), kinds[i].name);
        also(",\"%s\":%llu", kinds[i].name, (unsigned long long)(on_card() - before));
    }
    if (!found)
        stop_with("--kind %s: there is large, small, pitch, managed, pool, array, mapped, all, random", options->kind);
    sleep_until(start + options->seconds);
    while (found) give(&held[--found]);
    trim();
    outcome.wall_seconds = now_s() - start;
}

static void run(const struct options *options) {
    card = options->card;
    if (!options->mib || options->mib * MIB % GRANULE) stop_with("--mib: must be a multiple of 2");
    open_card(card);
    if (!strcmp(options->kind, "random"))
        operate_at_random(options);
    else
        hold(options);
}

const struct program program = {
    .name = "allocate",
    .summary = "takes memory of every kind and tells what each took from the card",
    .own_options = "kind mib seed",
    .defaults = {.count = 100, .kind = "all", .mib = 64, .seed = 1},
    .run = run,
};
