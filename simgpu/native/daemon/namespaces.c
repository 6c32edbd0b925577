#define _GNU_SOURCE
#include "namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 33 }; /* the kernel allows 32 nested below the first */

/* The process's pids, from our namespace down to its own. Returns how many; 0 if it does not exist. */
static int numbers_of(u32 pid, u32 numbers[DEEPEST]) {
    char path[32], line[1024];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    FILE *status = fopen(path, "re");
    if (!status) return 0;
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "NSpid:", 6)) continue;
        char *rest = line + 6, *end;
        for (u32 number; count < DEEPEST && (number = (u32)strtoul(rest, &end, 10), end != rest); rest = end)
            numbers[count++] = number;
        break;
    }
    fclose(status);
    return count;
}

static int namespace_of(u32 pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/ns/pid", pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool same(int one, int other) {
    struct stat a, b;
    return !fstat(one, &a) && !fstat(other, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Whether the namespace `above` levels over that of `pid` is the namespace of `viewer`. */
static bool is_above(u32 viewer, u32 pid, int above) {
    int goal = namespace_of(viewer), at = namespace_of(pid);
    for (; at >= 0 && above > 0; above--) {
        int parent = ioctl(at, NS_GET_PARENT);
        close(at);
        at = parent;
    }
    bool found = goal >= 0 && at >= 0 && same(goal, at);
    if (goal >= 0) close(goal);
    if (at >= 0) close(at);
    return found;
}

u32 pid_as_seen_by(u32 viewer, u32 pid) {
    u32 of_viewer[DEEPEST], of_pid[DEEPEST];
    int depth = numbers_of(viewer, of_viewer), deep = numbers_of(pid, of_pid);
    if (depth == 0 || deep < depth) return 0;
    if (depth == 1) return pid; /* the viewer's namespace is ours */
    return is_above(viewer, pid, deep - depth) ? of_pid[depth - 1] : 0;
}
