/* simgpud: simulates the kernel driver of one node. */
#define _GNU_SOURCE
#include "clients.h"
#include "control.h"
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_CONFIG = 78, OWN_DESCRIPTORS = 64, ENOUGH_OF_A_KIND = 4096 };

/* Relative to the root, which is the working directory. */
#define CONFIG "etc/simgpu/node.conf"
#define LOCK "run/simgpu/lock"
#define CONTROL "run/simgpu/control"
#define CALLS (SIM_SOCKET + 1)

/* Exits with a message: what failed, on what, and why. */
static _Noreturn void fail(const char *root, const char *what, const char *why) {
    fprintf(stderr, "simgpud: %s/%s: %s\n", root, what, why);
    exit(EXIT_FAILURE);
}

static void make_folders(const char *root) {
    static const char *const FOLDERS[] = {"run", "run/simgpu", "run/nvidia-persistenced"};
    for (size_t n = 0; n < sizeof FOLDERS / sizeof *FOLDERS; n++)
        if (mkdir(FOLDERS[n], 0755) && errno != EEXIST) fail(root, FOLDERS[n], strerror(errno));
}

/* The lock is held until the process ends in any way. */
static void lock_root(const char *root) {
    int fd = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) fail(root, LOCK, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) fail(root, LOCK, "another simgpud serves this node; end it first");
}

static void read_config(struct config *config) {
    char error[256];
    if (config_read_file(config, CONFIG, error, sizeof error)) return;
    fprintf(stderr, "simgpud: %s\n", error);
    exit(EXIT_CONFIG);
}

/* A third of the descriptor limit for each kind of object that needs one. */
static u32 most_of_a_kind(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files)) return OWN_DESCRIPTORS;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    rlim_t each = files.rlim_cur > 2 * OWN_DESCRIPTORS ? (files.rlim_cur - OWN_DESCRIPTORS) / 3 : OWN_DESCRIPTORS / 3;
    return each < ENOUGH_OF_A_KIND ? (u32)each : ENOUGH_OF_A_KIND;
}

static void told_to_end(struct node *node, struct watch *watch, unsigned events) {
    struct signalfd_siginfo what;
    (void)events;
    if (read(watch->fd, &what, sizeof what) == sizeof what) node->stop = true;
}

static int watch_signals(struct node *node) {
    static struct watch watch = {.ready = told_to_end};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* the reader of the ready line may be gone */
    watch.fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return watch.fd < 0 ? -1 : loop_watch(node->loop, &watch);
}

static void start(struct node *node, const char *root, const struct config *config) {
    node->loop = epoll_create1(EPOLL_CLOEXEC);
    node->most_of_a_kind = most_of_a_kind();
    if (node->loop < 0 || node_open(node, config)) fail(root, "memory files", strerror(errno));
    if (watch_signals(node) || sampling_begin(node)) fail(root, "signals and timer", strerror(errno));
    if (clients_listen(node, CALLS)) fail(root, CALLS, strerror(errno));
    if (control_listen(node, CONTROL, CONFIG)) fail(root, CONTROL, strerror(errno));
    node_state(node, SIM_RUNNING);
}

static void stop(struct node *node) {
    unlink(CALLS);
    unlink(CONTROL);
    node_close(node);
}

int main(int count, char **arguments) {
    static struct node node;
    static struct config config;
    if (count != 2) {
        fprintf(stderr, "usage: simgpud ROOT, a folder with etc/simgpu/node.conf\n");
        return EXIT_USAGE;
    }
    const char *root = arguments[1];
    if (chdir(root)) fail(root, "", strerror(errno));
    read_config(&config);
    make_folders(root);
    lock_root(root);
    start(&node, root, &config);
    puts("ready");
    fflush(stdout);
    loop_run(node.loop, &node, &node.stop);
    stop(&node);
    return EXIT_SUCCESS;
}
