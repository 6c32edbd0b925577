/* Several processes on one card, each of which floods it; measures each one's share. */
#include "common.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64 };

/* A process's report to the first one; smaller than a pipe's atomic write. */
struct part {
    u64 launches;
    double gpu_seconds, wall_seconds;
    char error[256];
};

static int results;

static void tell_part(const char *error) {
    struct part part = {outcome.launches, outcome.gpu_seconds, outcome.wall_seconds, ""};
    if (error) snprintf(part.error, sizeof part.error, "%s", error);
    if (write(results, &part, sizeof part) != sizeof part) exit(1);
}

/* Makes its first driver call in the child: a forked process cannot use what its parent initialized. */
static void flood(const struct options *options, int ready, int go) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stopping = tell_part;
    const struct work work = work_begin(options);
    struct marks *marks = marks_new(work.stream);
    char c = 0;
    if (write(ready, &c, 1) != 1) exit(1);
    close(ready);
    if (read(go, &c, 1) != 0) exit(1); /* all begin when the parent closes its end */
    marks_begin(marks);
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        launch(&work, work.duration_ns);
        mark(marks, outcome.launches);
    }
    outcome.launches = marks_reached(marks, &outcome.wall_seconds);
    outcome.gpu_seconds = (double)(outcome.launches * work.duration_ns) * 1e-9;
    tell_part(NULL);
    exit(0);
}

static void collect(int from, u64 processes) {
    struct part part;
    char error[sizeof part.error] = "";
    also(",\"each\":[");
    for (u64 i = 0; i < processes && read(from, &part, sizeof part) == sizeof part; i++) {
        also("%s{\"launches\":%llu,\"gpu_seconds\":%.9f,\"wall_seconds\":%.9f}", i ? "," : "",
             (unsigned long long)part.launches, part.gpu_seconds, part.wall_seconds);
        outcome.launches += part.launches;
        outcome.gpu_seconds += part.gpu_seconds;
        if (part.wall_seconds > outcome.wall_seconds) outcome.wall_seconds = part.wall_seconds;
        if (*part.error) memcpy(error, part.error, sizeof error);
    }
    also("]");
    if (*error) stop_with("%s", error);
}

static void run(const struct options *options) {
    int ready[2], go[2], told[2];
    char c;
    if (options->processes < 1 || options->processes > MOST) stop_with("--processes: 1 to %d", MOST);
    if (pipe(ready) || pipe(go) || pipe(told)) stop_with("no pipes");
    for (u64 i = 0; i < options->processes; i++) {
        const pid_t child = fork();
        if (child < 0) stop_with("no more processes");
        if (child) continue;
        close(go[1]);
        results = told[1];
        flood(options, ready[1], go[0]);
    }
    close(ready[1]), close(go[0]), close(told[1]);
    for (u64 i = 0; i < options->processes; i++)
        if (read(ready[0], &c, 1) != 1) break; /* one could not begin, and has reported why */
    close(go[1]);
    collect(told[0], options->processes);
    int status, failed = 0;
    while (wait(&status) > 0) failed += status != 0;
    if (failed) stop_with("%d of the processes ended early", failed);
}

const struct program program = {
    .name = "several",
    .summary = "floods a card from several processes at once",
    .own_options = "processes",
    .defaults = {.seconds = 2, .kernel_us = 1000, .processes = 2},
    .run = run,
};
