#define _GNU_SOURCE
#include "limits.h"

#include "node.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

struct limit {
    LIST_ENTRY(limit) next;
    u32 card;
    u64 bytes;
    char folder[PATH_MAX];
};

static bool folder_of(int fd, char path[PATH_MAX]) {
    char link[32];
    struct statfs system;
    if (fd < 0 || fstatfs(fd, &system) || system.f_type != CGROUP2_SUPER_MAGIC) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return false;
    path[length] = 0;
    return true;
}

static void forget(struct limit *limit) {
    LIST_REMOVE(limit, next);
    free(limit);
}

/* Removes limits whose groups are gone, and the one of this card and folder if there is one. */
static void clear(struct node *node, u32 card, const char *folder) {
    for (struct limit *limit = LIST_FIRST(&node->limits), *next; limit; limit = next) {
        next = LIST_NEXT(limit, next);
        bool is_same = limit->card == card && !strcmp(limit->folder, folder);
        if (is_same || access(limit->folder, F_OK)) forget(limit);
    }
}

enum sim_result limit_set(struct node *node, u32 card, int folder, u64 bytes) {
    char path[PATH_MAX];
    if (!folder_of(folder, path)) return SIM_UNKNOWN;
    clear(node, card, path);
    if (bytes == UINT64_MAX) return SIM_OK;
    struct limit *limit = malloc(sizeof *limit);
    if (!limit) return SIM_NO_ROOM;
    *limit = (struct limit){.card = card, .bytes = bytes};
    memcpy(limit->folder, path, sizeof path);
    LIST_INSERT_HEAD(&node->limits, limit, next);
    return SIM_OK;
}

/* The process's group in the unified hierarchy (cgroup v2), from its root; false: it is gone. */
static bool group_of(const struct process *process, char group[PATH_MAX]) {
    char path[32], line[PATH_MAX + 8];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%u/cgroup", process->pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = !strncmp(line, "0::", 3);
        line[strcspn(line, "\n")] = 0;
        if (found) snprintf(group, PATH_MAX, "%s", line + 3);
    }
    if (file) fclose(file);
    return found;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* Whether the process is in the limit's group or a descendant of it. */
static bool covers(const struct limit *limit, const struct process *process) {
    char group[PATH_MAX];
    if (!group_of(process, group)) return false;
    for (char *last = group + strlen(group); last && last != group; last = strrchr(group, '/')) {
        *last = 0;
        if (ends_with(limit->folder, group)) return true;
    }
    return false;
}

static u64 used_by(const struct node *node, const struct limit *limit) {
    const struct process *process;
    u64 used = 0;
    LIST_FOREACH(process, &node->processes, next)
    if (process->account[limit->card].bytes && covers(limit, process)) used += process->account[limit->card].bytes;
    return used;
}

bool limits_allow(struct node *node, u32 card, const struct process *process, u64 bytes) {
    const struct limit *limit;
    LIST_FOREACH(limit, &node->limits, next) {
        if (limit->card != card || !covers(limit, process)) continue;
        u64 used = used_by(node, limit);
        if (used > limit->bytes || bytes > limit->bytes - used) return false;
    }
    return true;
}
