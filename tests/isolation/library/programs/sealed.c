/* May make next to no system calls: from the start, or after the first call of the driver. */
#include "program.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void seal(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(write),
        ALLOW(futex),
        ALLOW(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int count, char **words) {
    static char room[256];
    setvbuf(stdout, room, _IOFBF, sizeof room);
    void *handle = opened("libcuda.so.1", RTLD_NOW), *address;
    int after = count > 1 && !strcmp(words[1], "after"), version = 0;
    int (*ask)(const char *, void **, int, long, int *) =
        (int (*)(const char *, void **, int, long, int *))found(handle, "cuGetProcAddress_v2");
    int (*other)(void *, unsigned *) = (int (*)(void *, unsigned *))found(handle, "cuCtxGetApiVersion");
    unsigned caller;
    if (after) version = version_in(handle);
    seal();
    if (after) version += ask("cuDriverGetVersion", &address, 12000, 0, NULL) + other(NULL, &caller);
    printf("%d\n", version);
}
