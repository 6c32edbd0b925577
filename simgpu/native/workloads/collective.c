/* Training steps on several cards: kernels, then a collective, which spins on its card until all peers arrive.
 *
 * Each peer is a separate process; they share a file. A round is done when its collective is. For simulated cards only:
 * a real one has no kernel of that name.
 */
#include "common.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SHARED_BYTES = 4096 };

static uint32_t *shared_words(const char *at) {
    const int file = *at ? open(at, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (*at && (file < 0 || ftruncate(file, SHARED_BYTES))) stop_with("--at %s: can't be written", at);
    const int kind = *at ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *words = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, kind, file, 0);
    if (words == MAP_FAILED) stop_with("--at %s: can't be mapped", at);
    if (*at) close(file);
    NEED(cuMemHostRegister_v2, words, SHARED_BYTES, 0);
    return words;
}

static CUdeviceptr on_card(uint32_t *words) {
    CUdeviceptr address;
    NEED(cuMemHostGetDevicePointer_v2, &address, words, 0);
    return address;
}

static CUfunction meeting(void) {
    CUmodule module;
    CUfunction meet;
    NEED(cuModuleLoadData, &module, "any");
    NEED(cuModuleGetFunction, &meet, module, "sim_meet");
    return meet;
}

static void run(const struct options *options) {
    const u64 most = SHARED_BYTES / sizeof(uint32_t);
    if (options->processes < 1 || options->processes > most)
        stop_with("--processes: 1 to %llu", (unsigned long long)most);
    if (options->rank >= options->processes) stop_with("--rank: less than --processes");
    if (options->processes > 1 && !*options->at) stop_with("--at: peers must share a file");
    const struct work work = work_begin(options);
    uint32_t *words = shared_words(options->at);
    CUdeviceptr address = on_card(words);
    const CUfunction meet = meeting();
    uint32_t own = (uint32_t)options->rank, peers = (uint32_t)options->processes;
    const double start = now_s();
    u64 rounds = 0;
    while (goes_on(options, rounds, start)) {
        for (u64 i = 0; i < options->kernels; i++) launch(&work, work.duration_ns);
        uint32_t round = (uint32_t)rounds + 1;
        void *parameters[] = {&address, &own, &peers, &round};
        NEED(cuLaunchKernel, meet, 1, 1, 1, 32, 1, 1, 0, work.stream, parameters, NULL);
        NEED(cuStreamSynchronize, work.stream);
        rounds++;
        outcome.wall_seconds = now_s() - start;
        outcome.gpu_seconds = (double)(outcome.launches * work.duration_ns) * 1e-9;
    }
    __atomic_store_n(&words[own], INT32_MAX, __ATOMIC_RELEASE); /* so that no peer spins for a process that has ended */
    also(",\"rounds\":%llu", (unsigned long long)rounds);
}

const struct program program = {
    .name = "collective",
    .summary = "launches kernels, and meets its peers on other cards after every few",
    .own_options = "processes kernels rank at",
    .defaults = {.seconds = 2, .kernel_us = 1000, .kernels = 3, .processes = 1, .at = ""},
    .run = run,
};
