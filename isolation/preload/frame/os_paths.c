/* What this process was started with, and where the files of this library and of the broker are. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "entries.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

const char *os_environment(const char *name) { return secure_getenv(name); }

bool os_own_path(char path[OS_PATH]) {
    Dl_info info;
    size_t length = dladdr(entry_spares, &info) && info.dli_fname ? strlen(info.dli_fname) : 0;
    if (!length || length >= OS_PATH) return false;
    memcpy(path, info.dli_fname, length + 1);
    return true;
}

/* Removes the last component of a path; false if there is only one. */
static bool cut(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    return slash;
}

bool os_beside(const char *name, char path[OS_PATH]) {
    static const char lib[] = "/lib";
    size_t length = strlen(name), end;
    if (!os_own_path(path) || path[0] != '/' || !cut(path)) return false;
    end = strlen(path);
    if (end < sizeof lib - 1 || memcmp(path + end - (sizeof lib - 1), lib, sizeof lib) != 0) return false;
    cut(path);
    end = strlen(path);
    if (end + length + 2 > OS_PATH) return false;
    path[end] = '/';
    memcpy(path + end + 1, name, length + 1);
    return true;
}

/* The socket in the folder of the container's claim. */
static bool claim_path(char path[OS_PATH]) {
    static const char claims[] = OS_PLACE "/claims/", socket[] = "/broker";
    char *name = path + sizeof claims - 1;
    memcpy(path, claims, sizeof claims);
    if (!os_only_name(path, name)) return false;
    memcpy(name + strlen(name), socket, sizeof socket);
    return true;
}

void os_broker_path(char path[OS_PATH]) {
    KEEP_ERRNO;
    struct os_file file;
    if (os_beside("broker", path) && os_look(path, &file) && file.is_socket) return;
    if (claim_path(path)) return;
    memcpy(path, OS_PLACE "/broker", sizeof OS_PLACE "/broker");
}

bool os_broker_says(const char *name) {
    KEEP_ERRNO;
    char path[OS_PATH];
    struct os_file file;
    os_broker_path(path);
    char *last = strrchr(path, '/') + 1;
    if ((size_t)(last - path) + strlen(name) + 1 > sizeof path) return false;
    memcpy(last, name, strlen(name) + 1);
    return os_look(path, &file);
}
