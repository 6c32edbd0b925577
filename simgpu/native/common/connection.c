#define _GNU_SOURCE
#include "connection.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Library folders below a driver's root. */
static const char *const LIBRARY_FOLDERS[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                              "/usr/lib"};

static pthread_mutex_t connecting = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;
static struct sim_node the_node = {.socket = -1};
static _Atomic pid_t owner; /* the process that connected; no other may use its socket */
static bool is_watched;     /* whether fork handlers are installed */

/* ---- locating the node ------------------------------------------------------------------------------------------ */

/* The driver root that contains the library at `path`, derived from its folder. */
static bool root_of(const char *path, char *root, size_t room) {
    char folder[PATH_MAX], real[PATH_MAX];
    if (strlen(path) >= sizeof folder) return false;
    strcpy(folder, path);
    char *name = strrchr(folder, '/');
    if (!name) return false;
    *name = 0;
    if (!realpath(folder, real)) return false;
    for (size_t n = 0; n < sizeof LIBRARY_FOLDERS / sizeof *LIBRARY_FOLDERS; n++) {
        size_t length = strlen(real), tail = strlen(LIBRARY_FOLDERS[n]);
        if (length < tail || length - tail >= room || strcmp(real + length - tail, LIBRARY_FOLDERS[n])) continue;
        memcpy(root, real, length - tail);
        root[length - tail] = 0;
        return true;
    }
    return false;
}

/* Tries the path that this library was loaded from, then its resolved path: the library may be a symbolic link. */
static bool find_root(char *root, size_t room) {
    Dl_info about;
    char real[PATH_MAX];
    if (!dladdr(&the_node, &about) || !about.dli_fname) return false;
    return root_of(about.dli_fname, root, room) || (realpath(about.dli_fname, real) && root_of(real, root, room));
}

/* A connected socket, or -1. The path may exceed a socket address, so it goes through a descriptor of its folder. */
static int connect_below(const char *root) {
    char folder[PATH_MAX];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = strrchr(SIM_SOCKET, '/');
    snprintf(folder, sizeof folder, "%s%.*s", root, (int)(name - SIM_SOCKET), SIM_SOCKET);
    int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return -1;
    if (snprintf(address.sun_path, sizeof address.sun_path, "%s%s", folder, name) >= (int)sizeof address.sun_path)
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%s", at, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int failed = fd < 0;
    while (!failed && connect(fd, (struct sockaddr *)&address, sizeof address)) failed = errno != EINTR;
    close(at);
    if (failed && fd >= 0) close(fd);
    return failed ? -1 : fd;
}

/* ---- one call --------------------------------------------------------------------------------------------------- */

static bool send_request(int socket, const struct sim_request *request, int fd) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)request, .iov_len = sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        control.head =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *request;
}

/* Stores up to `most` received descriptors in `fds`; the rest stay -1. Returns the reply's length, or -1. */
static ssize_t receive_reply(int socket, void *reply, size_t room, int *fds, size_t most) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = reply, .iov_len = room};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    for (size_t n = 0; n < most; n++) fds[n] = -1;
    const struct cmsghdr *head = received > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return received;
    for (size_t n = 0; n < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); n++) {
        int fd;
        memcpy(&fd, CMSG_DATA(head) + n * sizeof fd, sizeof fd);
        if (n < most)
            fds[n] = fd;
        else
            close(fd);
    }
    return received;
}

/* The caller holds `calling`. A socket on which a call failed is shut down, so that a late reply cannot answer the next
 * call. */
static int exchange(int socket, const struct sim_request *request, void *reply, size_t room, int send, int *fds,
                    size_t most) {
    ssize_t received = -1;
    for (size_t n = 0; n < most; n++) fds[n] = -1;
    if (send_request(socket, request, send)) received = receive_reply(socket, reply, room, fds, most);
    if (received >= (ssize_t)sizeof(struct sim_reply)) return (int)((struct sim_reply *)reply)->result;
    shutdown(socket, SHUT_RDWR);
    return SIM_BROKEN;
}

/* `exchange`, serialized, protected from thread cancellation, and with errno preserved. */
static int call(struct sim_node *node, const struct sim_request *request, void *reply, size_t room, int send,
                int *got) {
    int before = errno, cancel, result = SIM_BROKEN;
    if (owner != getpid()) return SIM_BROKEN;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&calling);
    if (node->socket >= 0) result = exchange(node->socket, request, reply, room, send, got, got ? 1 : 0);
    pthread_mutex_unlock(&calling);
    pthread_setcancelstate(cancel, NULL);
    errno = before;
    return result;
}

int sim_call(struct sim_node *node, const struct sim_request *request, struct sim_reply *reply, int *fd) {
    const struct timespec moment = {.tv_nsec = 2000000};
    int send = fd ? *fd : -1;
    for (;;) {
        if (fd) *fd = -1;
        *reply = (struct sim_reply){0};
        reply->result = (u32)call(node, request, reply, sizeof *reply, send, fd);
        if (reply->result != SIM_WAIT) return (int)reply->result;
        nanosleep(&moment, NULL);
    }
}

int sim_processes_of(struct sim_node *node, u32 card, struct sim_process *found, int most) {
    struct sim_processes batch;
    u32 first = 0;
    for (int count = 0;;) {
        struct sim_request request = {.ask = SIM_PROCESSES, .card = card, .id = first};
        batch.reply.count = 0;
        int result = call(node, &request, &batch, sizeof batch, -1, NULL);
        if (result != SIM_OK) return -result;
        for (u32 n = 0; n < batch.reply.count && n < SIM_PROCESSES_AT_ONCE / 2; n++, count++)
            if (count < most) found[count] = batch.process[n];
        if (batch.reply.count < SIM_PROCESSES_AT_ONCE / 2) return count;
        first = batch.process[SIM_PROCESSES_AT_ONCE / 2 - 1].row + 1;
    }
}

bool sim_alive(const struct sim_node *node) {
    int before = errno;
    struct pollfd socket = {.fd = node->socket, .events = POLLRDHUP};
    bool alive = owner == getpid() && node->file && node->socket >= 0 && poll(&socket, 1, 0) == 0;
    errno = before;
    return alive && atomic_load_explicit(&node->file->state, memory_order_acquire) == SIM_RUNNING;
}

/* ---- the connection --------------------------------------------------------------------------------------------- */

/* The child keeps neither socket nor node. The mappings stay, since code that still reads them must not crash. Locks
 * may have been held by threads that the child does not have. */
static void forget_in_child(void) {
    int before = errno;
    if (the_node.socket >= 0) close(the_node.socket);
    the_node.socket = -1;
    the_node.file = NULL;
    calling = connecting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    errno = before;
}

static void *map_file(int fd, size_t bytes, int protection) {
    struct stat about;
    if (fd < 0 || fstat(fd, &about) || (size_t)about.st_size < bytes) return NULL;
    void *at = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool map_node(struct sim_node *node, const int fds[2]) {
    const struct sim_node_file *file = map_file(fds[0], sizeof *file, PROT_READ);
    if (!file) return false;
    if (file->magic == SIM_NODE_MAGIC && file->version == SIM_NODE_VERSION && file->cards <= SIM_CARDS) {
        node->timelines = map_file(fds[1], file->cards * sizeof *node->timelines, PROT_READ | PROT_WRITE);
        node->file = file;
        if (node->timelines) return true;
    }
    node->file = NULL;
    munmap((void *)(uintptr_t)file, sizeof *file);
    return false;
}

static int connect_node(struct sim_node *node) {
    struct sim_request hello = {.ask = SIM_HELLO, .id = SIM_PROTOCOL};
    struct sim_reply reply;
    int fds[2];
    if (!find_root(node->root, sizeof node->root)) return SIM_BROKEN;
    int socket = connect_below(node->root);
    if (socket < 0) return SIM_BROKEN;
    int result = exchange(socket, &hello, &reply, sizeof reply, -1, fds, 2);
    if (result == SIM_OK && !map_node(node, fds)) result = SIM_BROKEN;
    for (int n = 0; n < 2; n++)
        if (fds[n] >= 0) close(fds[n]);
    if (result == SIM_OK)
        node->socket = socket;
    else
        close(socket);
    return result;
}

/* A process forked from a connected one stays without a node. */
static int connect_once(void) {
    if (owner) return owner == getpid() ? SIM_OK : SIM_BROKEN;
    if (!is_watched && pthread_atfork(NULL, NULL, forget_in_child)) return SIM_BROKEN;
    is_watched = true;
    int result = connect_node(&the_node);
    if (result == SIM_OK) owner = getpid();
    return result;
}

int sim_connect(struct sim_node **node) {
    int before = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&connecting);
    int result = connect_once();
    pthread_mutex_unlock(&connecting);
    pthread_setcancelstate(cancel, NULL);
    *node = &the_node;
    errno = before;
    return result;
}

void sim_disconnect(void) {
    int before = errno;
    pthread_mutex_lock(&connecting);
    if (the_node.file) { /* a forked child has nothing to release, and may connect again */
        munmap(the_node.timelines, the_node.file->cards * sizeof *the_node.timelines);
        munmap((void *)(uintptr_t)the_node.file, sizeof *the_node.file);
        close(the_node.socket);
        the_node = (struct sim_node){.socket = -1};
    }
    owner = 0;
    pthread_mutex_unlock(&connecting);
    errno = before;
}

u32 sim_visible(const struct sim_node *node, u32 cards[SIM_CARDS]) {
    int before = errno;
    u32 count = 0;
    for (u32 card = 0; node->file && card < node->file->cards; card++) {
        const struct sim_model *model = &node->file->card[card].model;
        if (model->parent >= 0) model = &node->file->card[model->parent].model;
        char device[sizeof node->root + sizeof "/dev/nvidia4294967295"];
        snprintf(device, sizeof device, "%s/dev/nvidia%u", node->root, model->minor);
        if (access(device, F_OK) == 0) cards[count++] = card;
    }
    errno = before;
    return count;
}
