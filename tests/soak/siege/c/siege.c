/* Two programs for containers that share a card.
 *
 *     siege neighbour    wants all of the card's time by ordinary means, forever
 *     siege attacker     in turn, forever: everything that a container's own privileges allow to get more of the card
 *                        than its grant; each attempt is a separate process, which exits by itself
 *
 * The result of each attempt is printed; the card itself reports the attempt's use. A kernel's first argument is its
 * duration.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SHORT_NS = 1000000,
    LONG_NS = 100000000,
    SECONDS = 4,
    MIB = 1 << 20,
    CHUNK = 16 * MIB,
    CHUNKS = 4096,
    RELAXED = 2
};
enum { PINNED = 1, MANAGED = 2, NOWHERE = 0, ON_DEVICE = 1, ON_DOMAIN = 6 };

static const char image[] = ".version 8.0\n.target sm_70\n.visible .entry sim_arg() { ret; }\n";
static void *cuda, *function, *context;
static int device;

struct location {
    int type, id;
};

struct properties {
    int type, handles;
    struct location location;
    void *security;
    unsigned char rest[64];
};

static void *find(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) exit(1);
    return found;
}

#define CALL(library, name, ...) ((int (*)())find(library, name))(__VA_ARGS__)
#define MUST(library, name, ...)                                                                                       \
    do {                                                                                                               \
        if (CALL(library, name, __VA_ARGS__)) exit(1);                                                                 \
    } while (0)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void begin(void *library) {
    void *module;
    MUST(cuda, "cuInit", 0);
    usleep(300000); /* by then the library has done all its periodic work */
    MUST(cuda, "cuDeviceGet", &device, 0);
    MUST(library, "cuDevicePrimaryCtxRetain", &context, device);
    MUST(library, "cuCtxSetCurrent", context);
    MUST(library, "cuModuleLoadData", &module, image);
    MUST(library, "cuModuleGetFunction", &function, module, "sim_arg");
}

static void flood(void *library, void *stream, uint64_t takes_ns) {
    void *arguments[] = {&takes_ns};
    double until = now() + SECONDS;
    while (now() < until)
        for (int each = 0; each < 16 && now() < until; ++each)
            if (CALL(library, "cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL)) exit(1);
}

static void capture(int destroy) {
    void *stream;
    begin(cuda);
    MUST(cuda, "cuStreamCreate", &stream, 1);
    MUST(cuda, "cuStreamBeginCapture_v2", stream, RELAXED);
    if (destroy) CALL(cuda, "cuStreamDestroy_v2", stream);
    flood(cuda, (void *)1, SHORT_NS);
}

static void leak_a_capture(void) { capture(1); }
static void leave_a_capture_open(void) { capture(0); }

/* The driver by its own file, beside the library: contexts that are not reported. */
static void *by_path(void) {
    static const char *const places[] = {"/usr/lib/*/libcuda.so.[0-9]*.*", "/usr/lib64/libcuda.so.[0-9]*.*",
                                         "/run/nvidia/driver/usr/lib/*/libcuda.so.*"};
    glob_t found;
    for (size_t place = 0; place < sizeof places / sizeof *places; ++place)
        if (!glob(places[place], 0, NULL, &found) && found.gl_pathc) return dlopen(found.gl_pathv[0], RTLD_NOW);
    return NULL;
}

static void make_a_context_by_path(void) {
    begin(by_path());
    flood(cuda, NULL, SHORT_NS);
}

static void launch_blocking(void) {
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    begin(cuda);
    flood(cuda, NULL, LONG_NS);
}

/* A pool is made, or requested, once. */
static int take_of_pool(int how) {
    static void *pools[3];
    unsigned long long address;
    struct location domain = {ON_DOMAIN, device};
    struct properties managed = {.type = MANAGED, .location = {NOWHERE, 0}};
    void **pool = &pools[how];
    if (!*pool && how == 0 && CALL(cuda, "cuMemPoolCreate", pool, &managed)) return 1;
    if (!*pool && how == 1 && CALL(cuda, "cuMemGetMemPool", pool, &domain, PINNED)) return 1;
    if (!*pool && how == 2 && CALL(cuda, "cuMemGetDefaultMemPool", pool, &domain, PINNED)) return 1;
    return CALL(cuda, "cuMemAllocFromPoolAsync", &address, (size_t)CHUNK, *pool, NULL);
}

static int take(int how) {
    unsigned long long address, handle;
    size_t pitch;
    struct properties wanted = {.type = PINNED, .location = {how == 5 ? ON_DOMAIN : ON_DEVICE, device}};
    switch (how) {
    case 0: return CALL(cuda, "cuMemAlloc_v2", &address, (size_t)CHUNK);
    case 1: return CALL(cuda, "cuMemAllocPitch_v2", &address, &pitch, (size_t)MIB, (size_t)16, 4);
    case 2: return CALL(cuda, "cuMemAllocManaged", &address, (size_t)CHUNK, 1);
    case 3: return CALL(cuda, "cuMemAllocAsync", &address, (size_t)CHUNK, NULL);
    case 4:
    case 5: return CALL(cuda, "cuMemCreate", &handle, (size_t)CHUNK, &wanted, 0ULL);
    default: return take_of_pool(how - 6);
    }
}

static void take_memory(void) {
    begin(cuda);
    for (int chunk = 0, refusals = 0; chunk < CHUNKS && refusals < 64; ++chunk) refusals += take(rand() % 9) != 0;
    sleep(SECONDS);
}

static const struct attempt {
    const char *name;
    void (*make)(void);
} attempts[] = {
    {"leaked capture", leak_a_capture},          {"open capture", leave_a_capture_open},
    {"context by path", make_a_context_by_path}, {"blocking launches", launch_blocking},
    {"memory by every path", take_memory},
};

static void attack(void) {
    for (unsigned turn = 0;; ++turn) {
        const struct attempt *attempt = &attempts[turn % (sizeof attempts / sizeof *attempts)];
        int status = 0;
        pid_t child = fork();
        if (!child) {
            srand(turn);
            cuda = dlopen("libcuda.so.1", RTLD_NOW);
            attempt->make();
            _exit(0);
        }
        waitpid(child, &status, 0);
        printf("%s %d\n", attempt->name, status);
        fflush(stdout);
        usleep(200000);
    }
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "attacker")) attack();
    if (count != 2 || strcmp(words[1], "neighbour")) return 2;
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    begin(cuda);
    for (;;) flood(cuda, NULL, SHORT_NS);
}
