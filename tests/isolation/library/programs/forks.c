/* Before and after a fork, in the child and in the program that it executes. */
#include "program.h"

static void wait_for(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    if (status) printf("child ended with %x\n", status);
}

int main(int count, char **words) {
    int before = count > 1 ? version_in(opened("libcuda.so.1", RTLD_NOW)) : 0;
    if (count > 1 && !strcmp(words[1], "executed")) return printf("executed %d\n", before), 0;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        printf("child %d\n", version_in(opened("libcuda.so.1", RTLD_NOW)));
        fflush(stdout);
        execl(words[0], words[0], "executed", NULL);
        _exit(1);
    }
    wait_for(child);
    printf("parent %d\n", version_in(opened("libcuda.so.1", RTLD_NOW)));
}
