/* File inspection. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "os_system.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void tell(const struct stat *found, struct os_file *file) {
    const bool is_device = S_ISCHR(found->st_mode) || S_ISBLK(found->st_mode);
    *file =
        (struct os_file){found->st_dev, found->st_ino, (uint64_t)found->st_size, S_ISSOCK(found->st_mode), is_device};
}

bool os_look(const char *path, struct os_file *file) {
    struct stat found;
    if (SYSTEM(newfstatat, AT_FDCWD, path, &found, 0) != 0) return false;
    tell(&found, file);
    return true;
}

bool os_look_at(int descriptor, struct os_file *file) {
    int before = errno;
    struct stat found;
    bool done = SYSTEM(fstat, descriptor, &found) == 0;
    if (done) tell(&found, file);
    errno = before;
    return done;
}

static size_t read_all(int descriptor, char *into, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        long got = SYSTEM(read, descriptor, into + done, bytes - done);
        if (got == 0 || (got == -1 && errno != EINTR)) break;
        if (got > 0) done += (size_t)got;
    }
    return done;
}

static void *read_open(int descriptor, size_t most, size_t *bytes) {
    struct stat found;
    if (SYSTEM(fstat, descriptor, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size <= 0) return NULL;
    *bytes = (size_t)found.st_size < most ? (size_t)found.st_size : most;
    char *content = os_map(*bytes);
    if (content && read_all(descriptor, content, *bytes) < *bytes) {
        os_unmap(content, *bytes);
        return NULL;
    }
    return content;
}

void *os_read(const char *path, size_t most, size_t *bytes) {
    int before = errno;
    long descriptor = SYSTEM(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor == -1) return NULL;
    void *content = read_open((int)descriptor, most, bytes);
    os_close((int)descriptor);
    if (content) errno = before;
    return content;
}

/* The kernel's directory entry (linux_dirent64). */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    unsigned char type;
    char name[OS_NAME];
};

/* The number of names in one getdents buffer, without . and ..; the last one is stored in `name`. */
static unsigned count_names(const char *piece, long bytes, char name[OS_NAME]) {
    unsigned count = 0;
    for (const char *at = piece; at < piece + bytes; at += ((const struct entry *)at)->length) {
        const char *found = ((const struct entry *)at)->name;
        if (strcmp(found, ".") == 0 || strcmp(found, "..") == 0) continue;
        memcpy(name, found, strlen(found) + 1);
        count++;
    }
    return count;
}

bool os_only_name(const char *folder, char name[OS_NAME]) {
    KEEP_ERRNO;
    _Alignas(struct entry) char piece[2048];
    const int descriptor = (int)SYSTEM(openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    unsigned count = 0;
    long bytes = 0;
    if (descriptor == -1) return false;
    while (count < 2 && (bytes = SYSTEM(getdents64, descriptor, piece, sizeof piece)) > 0)
        count += count_names(piece, bytes, name);
    os_close(descriptor);
    return bytes != -1 && count == 1;
}
