/* Allocates memory on the container's first card by commands: `memory serve` waits for commands, `memory ask COMMAND`
 * sends one to the waiting process, `memory COMMAND` executes one by itself. The commands:
 *
 *     view       the card's size and free memory, by CUDA and by NVML
 *     take MIB   one more allocation
 *     free       frees the last allocation
 *
 * The reply is one line; for a call that failed, its name and error number. MEMORY_DRIVER names another file than
 * libcuda.so.1, which is opened by a name that reveals nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char questions[] = "/dev/shm/questions", answers[] = "/dev/shm/answers";
static unsigned long long held[1024];
static int count;

static void *find(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOW), *found = handle ? dlsym(handle, name) : NULL;
    if (!found) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return found;
}

static const char *driver(void) {
    static const char other[] = "/dev/shm/driver.so";
    const char *named = getenv("MEMORY_DRIVER");
    if (!named) return "libcuda.so.1";
    if (symlink(named, other) && errno != EEXIST) exit(1);
    return other;
}

#define CUDA(name, ...) ((int (*)())find(driver(), name))(__VA_ARGS__)
#define NVML(name, ...) ((int (*)())find("libnvidia-ml.so.1", name))(__VA_ARGS__)
#define TRY(call, name, ...)                                                                                           \
    do {                                                                                                               \
        int failed_ = call(name, __VA_ARGS__);                                                                         \
        if (failed_) {                                                                                                 \
            snprintf(line, 256, "%s %d", name, failed_);                                                               \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

static void begin(char *line) {
    static bool begun;
    int device;
    void *context;
    *line = '\0';
    if (begun) return;
    TRY(CUDA, "cuInit", 0);
    TRY(CUDA, "cuDeviceGet", &device, 0);
    TRY(CUDA, "cuDevicePrimaryCtxRetain", &context, device);
    TRY(CUDA, "cuCtxSetCurrent", context);
    begun = true;
}

static void view(char *line) {
    size_t free_bytes, total_bytes, device_bytes;
    unsigned long long memory[3];
    void *card;
    TRY(CUDA, "cuMemGetInfo_v2", &free_bytes, &total_bytes);
    TRY(CUDA, "cuDeviceTotalMem_v2", &device_bytes, 0);
    if (((int (*)(void))find("libnvidia-ml.so.1", "nvmlInit_v2"))()) return;
    TRY(NVML, "nvmlDeviceGetHandleByIndex_v2", 0, &card);
    TRY(NVML, "nvmlDeviceGetMemoryInfo", card, memory);
    snprintf(line, 256, "total=%zu free=%zu device=%zu nvml_total=%llu nvml_free=%llu nvml_used=%llu", total_bytes,
             free_bytes, device_bytes, memory[0], memory[1], memory[2]);
}

static void take(char *line, unsigned long mib) {
    TRY(CUDA, "cuMemAlloc_v2", &held[count], (size_t)mib << 20);
    snprintf(line, 256, "took %lu", mib);
    count++;
}

static void give_back(char *line) {
    TRY(CUDA, "cuMemFree_v2", held[--count]);
    snprintf(line, 256, "gave back");
}

static void answer(char *line, const char *words) {
    unsigned long mib;
    begin(line);
    if (*line) return;
    if (!strncmp(words, "view", 4))
        view(line);
    else if (sscanf(words, "take %lu", &mib) == 1 && count < 1024)
        take(line, mib);
    else if (!strncmp(words, "free", 4) && count)
        give_back(line);
    else
        snprintf(line, 256, "what is %s?", words);
}

static FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file) return file;
    perror(path);
    exit(1);
}

static void serve(void) {
    char words[256], line[256];
    mkfifo(questions, 0600);
    mkfifo(answers, 0600);
    FILE *in = opened(questions, "r+"), *out = opened(answers, "r+");
    while (fgets(words, sizeof words, in)) {
        words[strcspn(words, "\n")] = '\0';
        answer(line, words);
        fprintf(out, "%s\n", line);
        fflush(out);
    }
}

static void ask(const char *words) {
    char line[256];
    FILE *out = opened(questions, "w"), *in = opened(answers, "r");
    fprintf(out, "%s\n", words);
    fflush(out);
    if (fgets(line, sizeof line, in)) printf("%s", line);
}

int main(int arguments, char **argument) {
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (arguments == 2 && !strcmp(argument[1], "serve")) {
        serve();
    } else if (arguments == 3 && !strcmp(argument[1], "ask")) {
        ask(argument[2]);
    } else {
        for (int i = 1; i < arguments; i++) {
            answer(line, argument[i]);
            puts(line);
        }
    }
    return 0;
}
