/* The driver as a whole, and what else belongs to no card. */
#define _GNU_SOURCE
#include "library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

NVML(nvmlSystemGetDriverVersion, char *version, u32 length) {
    CALL;
    return give_text(call.session->file->driver, version, length);
}

/* CUDA's major number stands before the driver's own version. */
NVML(nvmlSystemGetNVMLVersion, char *version, u32 length) {
    CALL;
    char text[sizeof(call.session->file->driver) + 12];
    snprintf(text, sizeof(text), "%u.%s", call.session->file->cuda / 1000, call.session->file->driver);
    return give_text(text, version, length);
}

static nvml_result cuda_version(int *version) {
    CALL;
    NEEDS(version != NULL);
    *version = (int)call.session->file->cuda;
    return NVML_OK;
}
NVML(nvmlSystemGetCudaDriverVersion_v2, int *version) { return cuda_version(version); }
NVML(nvmlSystemGetCudaDriverVersion, int *version) { return cuda_version(version); }

/* r580_95 for 580.95.05, much as NVIDIA names the branches that its drivers are built from. */
NVML(nvmlSystemGetDriverBranch, struct nvml_branch *branch, u32 length) {
    CALL;
    NEEDS(branch != NULL);
    TRY(check_version(branch->version, NVML_VERSION_OF(struct nvml_branch, 1)));
    u32 major = 0, minor = 0;
    sscanf(call.session->file->driver, "%u.%u", &major, &minor);
    char text[32];
    snprintf(text, sizeof(text), "r%u_%02u", major, minor);
    return give_text(text, branch->name, length < sizeof(branch->name) ? length : sizeof(branch->name));
}

/* The program that a process of the caller's pid namespace runs, cut to the buffer. */
NVML(nvmlSystemGetProcessName, u32 pid, char *name, u32 length) {
    CALL;
    NEEDS(name != NULL && length > 0);
    char path[32];
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == EACCES ? NVML_NO_PERMISSION : NVML_NOT_FOUND;
    const ssize_t size = read(file, name, length - 1);
    close(file);
    if (size < 0) return NVML_NOT_FOUND;
    name[size] = 0;
    return NVML_OK;
}

/* Racks of S-class units are no longer sold: there is never one. */
NVML(nvmlUnitGetCount, u32 *count) {
    CALL;
    NEEDS(count != NULL);
    *count = 0;
    return NVML_OK;
}

NVML(nvmlSystemGetHicVersion, u32 *count, void *cards) {
    CALL;
    NEEDS(count != NULL);
    return give_count(0, count, cards);
}

NVML(nvmlGetExcludedDeviceCount, u32 *count) {
    CALL;
    NEEDS(count != NULL);
    *count = 0;
    return NVML_OK;
}

NVML(nvmlSystemGetConfComputeCapabilities, struct nvml_confidential *capabilities) {
    CALL;
    NEEDS(capabilities != NULL);
    *capabilities = (struct nvml_confidential){0};
    return NVML_OK;
}

NVML(nvmlSystemGetConfComputeState, struct nvml_confidential_state *state) {
    CALL;
    NEEDS(state != NULL);
    *state = (struct nvml_confidential_state){0};
    return NVML_OK;
}
