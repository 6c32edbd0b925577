/* Connections with the broker. Only ppoll blocks, and never beyond a deadline. */
#define _GNU_SOURCE
#include "../core/os.h"
#include "os_system.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { HIGH = 512, RETRY_NS = OS_MS };

static bool fail(int why) {
    errno = why;
    return false;
}

void os_close(int descriptor) {
    KEEP_ERRNO;
    SYSTEM(close, descriptor);
}

bool os_is_ours(const struct os_socket *socket) {
    KEEP_ERRNO;
    struct stat found;
    return socket->inode && SYSTEM(fstat, socket->descriptor, &found) == 0 && S_ISSOCK(found.st_mode) &&
           found.st_dev == socket->device && found.st_ino == socket->inode;
}

void os_disconnect(struct os_socket *socket) {
    if (os_is_ours(socket)) os_close(socket->descriptor);
    *socket = (struct os_socket){0};
}

/* Moves a descriptor to a high number, as far as the process's limit allows. */
static int move_high(int descriptor) {
    for (int least = HIGH; least > 3; least /= 2) {
        long moved = SYSTEM(fcntl, descriptor, F_DUPFD_CLOEXEC, least);
        if (moved == -1) continue;
        os_close(descriptor);
        return (int)moved;
    }
    return descriptor;
}

static bool connect_to(int descriptor, const char *path, uint64_t deadline) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof name.sun_path) return fail(ENAMETOOLONG);
    memcpy(name.sun_path, path, length + 1);
    while (SYSTEM(connect, descriptor, &name, sizeof name) != 0) {
        if (errno != EAGAIN && errno != EINTR) return false;
        if (os_now() >= deadline) return fail(ETIMEDOUT);
        os_sleep(RETRY_NS);
    }
    return true;
}

bool os_connect(struct os_socket *made, const char *path, uint64_t deadline) {
    int before = errno;
    struct stat found;
    long descriptor = SYSTEM(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor == -1) return false;
    int moved = move_high((int)descriptor);
    if (!connect_to(moved, path, deadline) || SYSTEM(fstat, moved, &found) != 0) {
        os_close(moved);
        return false;
    }
    *made = (struct os_socket){moved, found.st_dev, found.st_ino};
    errno = before;
    return true;
}

/* Whether the operation that just failed may be retried. */
static bool may_go_on(const struct os_socket *socket, short events, uint64_t deadline) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN || !deadline) return false;
    uint64_t now = os_now();
    if (now >= deadline) return fail(ETIMEDOUT);
    uint64_t left = deadline - now, second = 1000 * (uint64_t)OS_MS;
    struct timespec limit = {(time_t)(left / second), (long)(left % second)};
    struct pollfd poll = {socket->descriptor, events, 0};
    return SYSTEM(ppoll, &poll, 1, deadline == OS_NEVER ? NULL : &limit, NULL, 0) != -1 || errno == EINTR;
}

bool os_send(const struct os_socket *socket, const void *packet, size_t bytes, uint64_t deadline) {
    int before = errno;
    for (;;) {
        if (!os_is_ours(socket)) return fail(EBADF);
        if (SYSTEM(sendto, socket->descriptor, packet, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0) != -1) break;
        if (!may_go_on(socket, POLLOUT, deadline)) return false;
    }
    errno = before;
    return true;
}

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

/* The descriptor received with the message, or -1. */
static int descriptor_of(struct msghdr *message) {
    int descriptor = -1;
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
        control->cmsg_len == CMSG_LEN(sizeof descriptor))
        memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
    return descriptor;
}

bool os_receive(const struct os_socket *socket, void *packet, size_t bytes, int *descriptor, uint64_t deadline) {
    int before = errno;
    union control control;
    struct iovec part = {packet, bytes};
    struct msghdr message;
    long got;
    for (;;) {
        message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_LEN(sizeof(int)); /* CMSG_SPACE would leave room for a second one */
        if (!os_is_ours(socket)) return fail(EBADF);
        got = SYSTEM(recvmsg, socket->descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got != -1) break;
        if (!may_go_on(socket, POLLIN, deadline)) return false;
    }
    int came = descriptor_of(&message);
    bool whole = got == (long)bytes && !(message.msg_flags & MSG_TRUNC);
    if (came != -1 && (!whole || !descriptor)) os_close(came);
    if (!whole) return fail(got == 0 ? ECONNRESET : EMSGSIZE);
    if (descriptor) *descriptor = came;
    errno = before;
    return true;
}
