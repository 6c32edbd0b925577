#define _GNU_SOURCE
#include "processes.h"

#include "accounts.h"
#include "contexts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- identification --------------------------------------------------------------------------------------------- */

/* A pidfd of the process that connected; older kernels only provide the process that has that pid now. */
static int pidfd_of_peer(int socket, pid_t pid) {
    int fd;
    socklen_t length = sizeof fd;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0) return fd;
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool has_ended(int pidfd) {
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return poll(&end, 1, 0) != 0;
}

static void ended(struct node *node, struct watch *watch, unsigned events) {
    (void)events;
    process_end(node, (struct process *)watch);
}

static struct process *new_process(struct node *node, u32 pid, int pidfd) {
    struct process *process = node->process_count < node->most_of_a_kind ? calloc(1, sizeof *process) : NULL;
    if (!process) return NULL;
    process->watch = (struct watch){.fd = pidfd, .ready = ended};
    if (loop_watch(node->loop, &process->watch)) {
        free(process);
        return NULL;
    }
    process->pid = pid;
    for (u32 card = 0; card < SIM_CARDS; card++) process->account[card].row = -1;
    LIST_INSERT_HEAD(&node->processes, process, next);
    node->process_count++;
    return process;
}

struct process *process_with(const struct node *node, u32 pid) {
    struct process *process;
    LIST_FOREACH(process, &node->processes, next)
    if (process->pid == pid) break;
    return process;
}

struct process *process_of_peer(struct node *node, int socket) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.pid <= 0) return NULL;
    struct process *known = process_with(node, (u32)peer.pid);
    if (known && has_ended(known->watch.fd)) {
        process_end(node, known); /* its pid was reused before we were notified of its end */
        known = NULL;
    }
    int pidfd = pidfd_of_peer(socket, peer.pid);
    if (pidfd < 0) return NULL;
    bool gone = has_ended(pidfd);
    struct process *process = gone ? NULL : known ? known : new_process(node, (u32)peer.pid, pidfd);
    if (!process || process == known) close(pidfd);
    return process;
}

/* ---- end of a process ------------------------------------------------------------------------------------------- */

void client_close(struct node *node, struct client *client) {
    loop_close(node->loop, &client->watch);
    LIST_REMOVE(client, of_process);
    client->process->client_count--;
    node->client_count--;
    free(client);
}

static void forget(struct node *node, struct process *process) {
    loop_close(node->loop, &process->watch);
    LIST_REMOVE(process, next);
    node->process_count--;
    free(process);
}

static bool has_anything(const struct process *process) {
    for (u32 card = 0; card < SIM_CARDS; card++)
        if (process->account[card].contexts) return true;
    return !LIST_EMPTY(&process->holds);
}

void process_leave(struct node *node, struct process *process) {
    if (LIST_EMPTY(&process->clients) && !has_anything(process)) forget(node, process);
}

void process_end(struct node *node, struct process *process) {
    contexts_forget(node, process);
    while (!LIST_EMPTY(&process->clients)) client_close(node, LIST_FIRST(&process->clients));
    forget(node, process);
}

/* ---- exec ------------------------------------------------------------------------------------------------------- */

/* Whether the process maps our timelines; assumed if it cannot be determined. */
static bool maps_timelines(const struct node *node, u32 pid) {
    char path[32], *line = NULL;
    size_t room = 0;
    struct stat lines;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps || fstat(node->lines_fd, &lines)) return true;
    bool found = false;
    while (!found && getline(&line, &room, maps) > 0) {
        unsigned long inode;
        found = strstr(line, "/memfd:" LINES_FILE_NAME) && sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 &&
                inode == lines.st_ino;
    }
    found |= ferror(maps) != 0;
    free(line);
    fclose(maps);
    return found;
}

/* Whether it has a connection that was already used. */
static bool is_spoken_for(const struct process *process) {
    const struct client *client;
    LIST_FOREACH(client, &process->clients, of_process) {
        struct pollfd end = {.fd = client->watch.fd};
        if (client->greeted && poll(&end, 1, 0) == 0) return true;
    }
    return false;
}

void process_check_exec(struct node *node, struct process *process) {
    if (!has_anything(process) || is_spoken_for(process) || has_ended(process->watch.fd)) return;
    if (!maps_timelines(node, process->pid)) contexts_forget(node, process);
}
