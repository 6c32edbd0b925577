/* First calls while signals arrive continuously; each in a separate process. */
#include "program.h"

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t came;

static void count(int signal) {
    (void)signal;
    came++;
    errno = ENOENT;
}

static int first_call(void) {
    struct itimerval often = {{0, 50}, {0, 50}};
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int version = version_in(opened("libcuda.so.1", RTLD_NOW));
    while (!came) continue;
    return version == 12340 ? 0 : 1;
}

int main(void) {
    int failed = 0, status;
    for (int time = 0; time < 50; time++) {
        pid_t child = fork();
        if (!child) _exit(first_call());
        while (waitpid(child, &status, 0) == -1 && errno == EINTR) continue;
        failed += status != 0;
    }
    printf("%d\n", failed);
}
