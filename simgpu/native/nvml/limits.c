/* The driver's own limits on card memory per control group. Drivers before branch 615 lack them. */
#define _GNU_SOURCE
#include "library.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_BRANCH = 615 };

static bool is_amount(u64 limit, u64 memory) { return limit <= memory || limit == NVML_NO_LIMIT; }

/* Soft limits are reservations for MPS, which is not simulated. */
NVML(nvmlDeviceSetMemoryLimits_v1, nvmlDevice device, const struct nvml_memory_limits *limits) {
    CALL_CARD;
    if (atoi(call.session->file->driver) < FIRST_BRANCH) return NVML_NOT_SUPPORTED;
    NEEDS(limits && limits->cgroup && limits->soft <= limits->hard && is_amount(limits->hard, model->memory));
    if (geteuid() != 0) return NVML_NO_PERMISSION;
    const int folder = open(limits->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return NVML_OPERATING_SYSTEM;
    const struct sim_request request = {.ask = SIM_LIMIT, .card = card, .bytes = limits->hard};
    struct sim_reply reply;
    int sent = folder;
    const int result = sim_call(call.session->node, &request, &reply, &sent);
    close(folder);
    if (sent >= 0) close(sent);
    return result == SIM_OK ? NVML_OK : result == SIM_UNKNOWN ? NVML_OPERATING_SYSTEM : NVML_UNKNOWN;
}
