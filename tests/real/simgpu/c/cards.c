/* Prints the cards of a container as NVML and CUDA see them: one line each, of words and key=value. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *load(const char *name) {
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL) {
        printf("%s: %s\n", name, dlerror());
        exit(1);
    }
    return library;
}

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        printf("%s is missing\n", name);
        exit(1);
    }
    return found;
}

static void require(int result, const char *what) {
    if (result == 0) return;
    printf("%s answered %d\n", what, result);
    exit(1);
}

#define CALL(library, name, ...) require(((int (*)())find(library, name))(__VA_ARGS__), name)

static void print_nvml(void) {
    void *nvml = load("libnvidia-ml.so.1");
    unsigned int count;
    CALL(nvml, "nvmlInit_v2");
    CALL(nvml, "nvmlDeviceGetCount_v2", &count);
    for (unsigned int index = 0; index < count; index++) {
        void *device;
        char uuid[96], name[96];
        unsigned long long memory[3];
        CALL(nvml, "nvmlDeviceGetHandleByIndex_v2", index, &device);
        CALL(nvml, "nvmlDeviceGetUUID", device, uuid, (unsigned int)sizeof uuid);
        CALL(nvml, "nvmlDeviceGetName", device, name, (unsigned int)sizeof name);
        CALL(nvml, "nvmlDeviceGetMemoryInfo", device, memory);
        printf("nvml %s total=%llu used=%llu %s\n", uuid, memory[0], memory[2], name);
    }
    CALL(nvml, "nvmlShutdown");
}

/* Also allocates the memory and keeps it. */
static void print_cuda(size_t bytes) {
    void *cuda = load("libcuda.so.1");
    int count, device;
    CALL(cuda, "cuInit", 0);
    CALL(cuda, "cuDeviceGetCount", &count);
    for (int ordinal = 0; ordinal < count; ordinal++) {
        void *context;
        char name[96];
        unsigned long long address;
        CALL(cuda, "cuDeviceGet", &device, ordinal);
        CALL(cuda, "cuDeviceGetName", name, (int)sizeof name, device);
        CALL(cuda, "cuDevicePrimaryCtxRetain", &context, device);
        CALL(cuda, "cuCtxSetCurrent", context);
        CALL(cuda, "cuMemAlloc_v2", &address, bytes);
        printf("cuda %s\n", name);
    }
}

/* cards [MIB]: with a number, allocates this much of each card by CUDA and waits for a signal. */
int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) print_cuda((size_t)atoll(argv[1]) << 20);
    print_nvml();
    if (argc > 1) pause();
    return 0;
}
