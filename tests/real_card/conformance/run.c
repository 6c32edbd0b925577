/* Runs cases against the driver that the loader finds, each in a separate process, and prints their facts.
 *
 *     conformance [--list] [AREA | AREA.CASE]...
 *
 * Every case ends with its line `outcome`: done, skipped or stopped with the reason, crash with the signal, or hang.
 * Exit 0: all were run, with any outcome. 1: there is no driver, or no process to load it. 2: usage.
 */
#include "run.h"
#include "conformance.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct conformance_case __start_cases[], __stop_cases[];

enum { LIMIT_S = 120 }; /* a case takes seconds at most; a longer one hangs */

static bool wanted(const char *name, char *const *words) {
    if (!*words) return true;
    for (; *words; words++) {
        const size_t length = strlen(*words);
        if (!strncmp(name, *words, length) && (!name[length] || name[length] == '.')) return true;
    }
    return false;
}

__attribute__((noreturn)) static void be_case(const struct conformance_case *one) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    setpgid(0, 0); /* a hanging case is killed with its child processes, */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* and with the parent */
    alarm(LIMIT_S);
    begin_case(one->name);
    one->run();
    tell(OUTCOME, "done");
    _exit(0);
}

/* Whether it was run. A crashed case can't print its outcome. */
static bool run_case(const struct conformance_case *one) {
    const pid_t pid = fork();
    if (pid < 0) {
        perror("conformance: fork");
        return false;
    }
    if (!pid) be_case(one);
    int status;
    if (waitpid(pid, &status, 0) != pid) return false;
    kill(-pid, SIGKILL); /* processes that it left behind */
    if (!WIFSIGNALED(status)) return true;
    begin_case(one->name);
    if (WTERMSIG(status) == SIGALRM)
        tell(OUTCOME, "hang");
    else
        tell(OUTCOME, "crash %d", WTERMSIG(status));
    return true;
}

/* The driver is loaded by a separate process: a process that forks must not have loaded it. */
static bool there_is_a_driver(void) {
    int status = -1;
    const pid_t pid = fork();
    if (!pid) {
        if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) _exit(0);
        fprintf(stderr, "conformance: no driver to ask: %s\n", dlerror());
        _exit(1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int by_name(const void *left, const void *right) {
    const struct conformance_case *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

int main(int argc, char **argv) {
    enum { MOST = 256 };
    const struct conformance_case *cases[MOST];
    const bool list = argc > 1 && !strcmp(argv[1], "--list");
    char *const *words = argv + 1 + list;
    size_t count = 0;
    for (const struct conformance_case *each = __start_cases; each < __stop_cases && count < MOST; each++)
        if (wanted(each->name, words)) cases[count++] = each;
    if (!count) {
        fprintf(stderr, "conformance: %s: no case is called so; --list names them\n", *words);
        return 2;
    }
    qsort(cases, count, sizeof *cases, by_name);
    for (size_t i = 0; list && i < count; i++) puts(cases[i]->name);
    if (list) return 0;
    bool all = there_is_a_driver();
    for (size_t i = 0; all && i < count; i++) all = run_case(cases[i]);
    return !all;
}
