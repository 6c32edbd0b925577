/* An NVML whose card has an MPS server: process 1. One of its clients is only in the list of MPS, another in both
 * lists. */
struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

static const struct process server = {1, 30 << 20, -1u, -1u};
static const struct process client = {2, 100 << 20, -1u, -1u};
static const struct process listed_twice = {3, 200 << 20, -1u, -1u};

int nvmlInit_v2(void) { return 0; }

const char *nvmlErrorString(int number) { return number ? "an error" : "none"; }

int nvmlDeviceGetHandleByUUID(const char *uuid, const void **handle) {
    *handle = uuid;
    return 0;
}

static int two(const struct process *one, const struct process *other, unsigned *count, struct process *list) {
    list[0] = *one;
    list[1] = *other;
    *count = 2;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(const void *handle, unsigned *count, struct process *list) {
    (void)handle;
    return two(&server, &listed_twice, count, list);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(const void *handle, unsigned *count, struct process *list) {
    (void)handle;
    return two(&client, &listed_twice, count, list);
}
