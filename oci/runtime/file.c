#include "file.h"

#include "alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void close_quietly(int descriptor) {
    const int kept = errno;
    close(descriptor);
    errno = kept;
}

char *file_read_all(int descriptor, size_t most, size_t *bytes) {
    size_t room = 16 << 10, done = 0;
    char *text = allocate(room);
    for (;;) {
        const ssize_t got = read(descriptor, text + done, room - done - 1);
        if (got == -1 && errno == EINTR) continue;
        if (got == 0) break;
        if (got > 0) done += (size_t)got;
        if (got > 0 && done > most) errno = EFBIG;
        if (got < 0 || done > most) {
            free(text);
            return NULL;
        }
        if (done == room - 1) text = reallocate(text, room *= 2);
    }
    text[done] = '\0';
    *bytes = done;
    return text;
}

char *file_read(const char *path, size_t most, size_t *bytes, struct stat *found) {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = NULL;
    if (descriptor == -1) return NULL;
    if (fstat(descriptor, found) == 0) {
        errno = S_ISREG(found->st_mode) ? EFBIG : EINVAL;
        if (S_ISREG(found->st_mode) && (size_t)found->st_size <= most) text = file_read_all(descriptor, most, bytes);
    }
    close_quietly(descriptor);
    return text;
}

static bool write_all(int descriptor, const char *text, size_t bytes) {
    while (bytes) {
        const ssize_t done = write(descriptor, text, bytes);
        if (done == -1 && errno != EINTR) return false;
        if (done > 0) text += done, bytes -= (size_t)done;
    }
    return true;
}

bool file_replace(const char *path, const char *text, size_t bytes, const struct stat *like) {
    char *fresh = formatted("%s.partage-XXXXXX", path);
    const int descriptor = mkostemp(fresh, O_CLOEXEC);
    bool done = false;
    if (descriptor != -1) {
        done = write_all(descriptor, text, bytes) && fchown(descriptor, like->st_uid, like->st_gid) == 0 &&
               fchmod(descriptor, like->st_mode & 07777) == 0 && rename(fresh, path) == 0;
        close_quietly(descriptor);
    }
    if (descriptor != -1 && !done) {
        const int kept = errno;
        unlink(fresh);
        errno = kept;
    }
    free(fresh);
    return done;
}
