#include "common.h"
#include "../common/spin.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MARKS = 4096 }; /* more than a launch queue holds, so that the latest mark reached is never overwritten */

struct outcome outcome;
void (*stopping)(const char *error);

static char members[16384];
static size_t members_length;

/* ---- output ------------------------------------------------------------------------------------------------------ */

void also(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    members_length += (size_t)vsnprintf(members + members_length, sizeof members - members_length, format, arguments);
    va_end(arguments);
    if (members_length >= sizeof members) abort(); /* internal error: no workload reports so much */
}

static void tell_with(const char *error) {
    const char *quote = error ? "\"" : "";
    printf("{\"workload\":\"%s\",\"launches\":%llu,\"gpu_seconds\":%.9f,\"wall_seconds\":%.9f%s,\"error\":%s%s%s}\n",
           program.name, (unsigned long long)outcome.launches, outcome.gpu_seconds, outcome.wall_seconds, members,
           quote, error ? error : "null", quote);
    fflush(stdout);
}

void tell(void) { tell_with(NULL); }

void stop_with(const char *format, ...) {
    char error[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, sizeof error, format, arguments);
    va_end(arguments);
    for (char *c = error; *c; c++) /* dlerror's text may contain any character */
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '\'';
    (stopping ? stopping : tell_with)(error);
    exit(1);
}

void require(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS) return;
    const char *name = NULL;
    if (CU(cuGetErrorName, result, &name) != CUDA_SUCCESS || !name) name = "unknown";
    stop_with("%s: %s (%d)", what, name, result);
}

/* ---- the driver -------------------------------------------------------------------------------------------------- */

void *driver_symbol(const char *name) {
    static void *library;
    if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) stop_with("%s; set LD_LIBRARY_PATH to the libraries of a node", dlerror());
    void *found = dlsym(library, name);
    if (!found) stop_with("the driver has no %s", name);
    return found;
}

void open_card(u64 card) {
    CUdevice device;
    CUcontext context;
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, (int)card);
    NEED(cuDevicePrimaryCtxRetain, &context, device);
    NEED(cuCtxSetCurrent, context);
}

struct work work_begin(const struct options *options) {
    struct work work = {.duration_ns = (u64)(options->kernel_us * 1e3)};
    CUmodule module;
    open_card(options->card);
    NEED(cuStreamCreate, &work.stream, 1); /* 1: does not synchronize with the default stream */
    NEED(cuModuleLoadData, &module, spinning_ptx);
    NEED(cuModuleGetFunction, &work.kernel, module, "sim_arg");
    launch(&work, 0);
    outcome.launches = 0;
    return work;
}

void launch(const struct work *work, u64 duration_ns) {
    void *parameters[] = {&duration_ns};
    NEED(cuLaunchKernel, work->kernel, 1, 1, 1, 32, 1, 1, 0, work->stream, parameters, NULL);
    outcome.launches++;
}

/* splitmix64 */
u64 next_random(u64 *state) {
    u64 mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static double clock_s(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double now_s(void) { return clock_s(CLOCK_MONOTONIC); }

double cpu_s(void) { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

void sleep_until(double when_s) {
    const struct timespec t = {(time_t)when_s, (long)((when_s - (double)(time_t)when_s) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

bool goes_on(const struct options *options, u64 done, double start) {
    if (options->count && done >= options->count) return false;
    return !(options->seconds > 0) || now_s() - start < options->seconds;
}

struct marks {
    CUstream stream;
    CUevent first, event[MARKS];
    u64 launches[MARKS];
    u64 made, reached;
};

struct marks *marks_new(CUstream stream) {
    struct marks *marks = calloc(1, sizeof *marks);
    if (!marks) stop_with("no memory for marks");
    marks->stream = stream;
    NEED(cuEventCreate, &marks->first, 0);
    for (int i = 0; i < MARKS; i++) NEED(cuEventCreate, &marks->event[i], 0);
    return marks;
}

void marks_begin(struct marks *marks) {
    NEED(cuEventRecord, marks->first, marks->stream);
    NEED(cuEventSynchronize, marks->first);
}

void mark(struct marks *marks, u64 launches) {
    const u64 place = marks->made++ % MARKS;
    marks->launches[place] = launches;
    NEED(cuEventRecord, marks->event[place], marks->stream);
}

u64 marks_reached(struct marks *marks, double *wall_s) {
    *wall_s = 0;
    if (!marks->made) return 0;
    /* From the newest backwards: marks of one stream are reached in order. */
    for (u64 back = 1; back <= marks->made && back <= MARKS; back++) {
        const u64 place = (marks->made - back) % MARKS;
        const CUresult result = CU(cuEventQuery, marks->event[place]);
        if (result == CUDA_ERROR_NOT_READY) continue;
        require(result, "cuEventQuery");
        float ms;
        NEED(cuEventElapsedTime, &ms, marks->first, marks->event[place]);
        *wall_s = ms * 1e-3;
        return marks->launches[place];
    }
    return 0;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const struct known {
    const char *name, *means;
    size_t place;
    enum { FLOATING, WHOLE, WORD } type;
    bool common;
} known[] = {
    {"seconds", "end after so long", offsetof(struct options, seconds), FLOATING, true},
    {"count", "end after so many rounds", offsetof(struct options, count), WHOLE, true},
    {"kernel-us", "how long a kernel runs, in microseconds", offsetof(struct options, kernel_us), FLOATING, true},
    {"card", "which card, as the driver counts them", offsetof(struct options, card), WHOLE, true},
    {"processes", "how many processes", offsetof(struct options, processes), WHOLE, false},
    {"rate", "requests in a second", offsetof(struct options, rate), FLOATING, false},
    {"kernels", "kernels of a graph or request", offsetof(struct options, kernels), WHOLE, false},
    {"mib", "how much memory, in MiB", offsetof(struct options, mib), WHOLE, false},
    {"kind", "what kind of memory, or all", offsetof(struct options, kind), WORD, false},
    {"rank", "which of the peers, from 0", offsetof(struct options, rank), WHOLE, false},
    {"at", "the file that peers share", offsetof(struct options, at), WORD, false},
    {"seed", "another seed, other choices", offsetof(struct options, seed), WHOLE, false},
};
enum { SECONDS, COUNT, KNOWN = sizeof known / sizeof *known };

static bool takes(const struct known *option) {
    if (option->common) return true;
    const char *own = program.own_options, *found = strstr(own, option->name);
    return found && (found == own || found[-1] == ' ') && strchr(" ", found[strlen(option->name)]);
}

static void help(void) {
    printf("%s: %s\n\nOptions:\n", program.name, program.summary);
    for (int i = 0; i < KNOWN; i++) {
        if (!takes(&known[i])) continue;
        const void *value = (const char *)&program.defaults + known[i].place;
        printf("  --%-12s %s", known[i].name, known[i].means);
        if (known[i].type == FLOATING) printf(" [%g]\n", *(const double *)value);
        if (known[i].type == WHOLE) printf(" [%llu]\n", *(const unsigned long long *)value);
        if (known[i].type == WORD) printf(" [%s]\n", *(const char *const *)value);
    }
    exit(0);
}

static void usage(const char *wrong, const char *word) {
    fprintf(stderr, "%s: %s: %s; see --help\n", program.name, word, wrong);
    exit(2);
}

static void set(struct options *options, const struct known *option, const char *text) {
    void *value = (char *)options + option->place;
    char *end = "";
    errno = 0;
    if (option->type == FLOATING) *(double *)value = strtod(text, &end);
    if (option->type == WHOLE) *(u64 *)value = strtoull(text, &end, 10);
    if (option->type == WORD) *(const char **)value = text;
    if (*end || errno || !*text || (option->type != WORD && *text == '-')) usage("not a number of this kind", text);
}

int main(int argc, char **argv) {
    struct options options = program.defaults;
    struct option names[KNOWN + 2] = {{"help", no_argument, NULL, 'h'}};
    for (int i = 0; i < KNOWN; i++) names[i + 1] = (struct option){known[i].name, required_argument, NULL, 1000 + i};
    bool given[KNOWN] = {false};
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, "h", names, NULL)) != -1;) {
        if (found == 'h') help();
        if (found < 1000 || !takes(&known[found - 1000])) usage("there is no such option", argv[optind - 1]);
        set(&options, &known[found - 1000], optarg);
        given[found - 1000] = true;
    }
    if (optind < argc) usage("not expected", argv[optind]);
    if (given[COUNT] && !given[SECONDS]) options.seconds = 0; /* an explicit end replaces the other default */
    if (given[SECONDS] && !given[COUNT]) options.count = 0;
    if (!options.count && !(options.seconds > 0)) usage("one of them must be given", "--seconds, --count");
    program.run(&options);
    tell();
    return 0;
}
