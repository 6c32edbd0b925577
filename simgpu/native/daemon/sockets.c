#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { QUEUE = 256 };

int socket_listen(const char *path, mode_t rights) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    unlink(path);
    mode_t before = umask(0777 & ~rights);
    bool listens = !bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, QUEUE);
    umask(before);
    if (listens) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

int socket_accept(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    /* Out of descriptors: the connection stays pending and the event repeats immediately, so pause to avoid a busy
     * loop. */
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) usleep(1000);
    return fd;
}

static int first_descriptor(struct msghdr *message) {
    int first = -1;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        for (size_t n = 0; n < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); n++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + n * sizeof fd, sizeof fd);
            if (first < 0)
                first = fd;
            else
                close(fd);
        }
    }
    return first;
}

enum packet socket_receive(int socket, void *at, size_t *bytes, int *fd) {
    char control[CMSG_SPACE(sizeof(int))]
        __attribute__((aligned(sizeof(long)))); /* descriptors that do not fit are closed by the kernel */
    struct iovec part = {.iov_base = at, .iov_len = *bytes};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *fd = -1;
    if (received < 0) return errno == EAGAIN || errno == EINTR ? PACKET_NONE : PACKET_END;
    *fd = first_descriptor(&message);
    *bytes = (size_t)received;
    if (received == 0) return PACKET_END; /* an empty packet looks the same, and is invalid */
    return message.msg_flags & MSG_TRUNC ? PACKET_TOO_LONG : PACKET_READ;
}

bool socket_send(int socket, const void *at, size_t bytes, const int fds[2]) {
    char control[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(sizeof(long)))) = {0};
    struct iovec part = {.iov_base = (void *)(size_t)at, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    size_t count = (fds[0] >= 0) + (fds[1] >= 0);
    if (count) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), fds[0] >= 0 ? fds : fds + 1, count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}
