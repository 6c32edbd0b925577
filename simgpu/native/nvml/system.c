/* The driver as a whole, and other functions without a card. */
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

/* CUDA's major number precedes the driver's own version. */
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

/* The program of a process in the caller's pid namespace, truncated to the buffer. */
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
