/* partage-oci: runs in place of runc. Has the agent place containers that ask for a part of a card, then executes the
 * real runtime. */
#include "alloc.h"
#include "create.h"
#include "hook.h"
#include "json.h"
#include "peer.h"
#include "refusal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The agent checks the container then; if the message is lost, it checks later. So nothing here waits or fails. */
static void tell_of_delete(const struct call *call, const struct settings *settings) {
    if (call->id) peer_tell(settings->socket, formatted("{\"ask\":\"delete\",\"id\":%s}\n", json_quoted(call->id)));
}

static bool is_this_program(const char *path) {
    struct stat own, other;
    return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

__attribute__((noreturn)) static void become(const char *runtime, const struct call *call, char **argv) {
    if (is_this_program(runtime))
        refuse(call, "the runtime %s is partage-oci itself; name runc or crun as `runtime` in partage-oci.conf",
               runtime);
    argv[0] = (char *)runtime;
    execv(runtime, argv);
    refuse(call, "the runtime %s can't be started: %s", runtime, strerror(errno));
}

int main(int argc, char **argv) {
    if (argc < 1) return EXIT_FAILURE;
    const struct settings settings = settings_read();
    const struct call call = arguments_read(argv);
    const char *runtime = settings.runtime;
    if (argc > 1 && !strcmp(argv[1], "hook")) return hook(argv[2], &settings);
    if (!runtime) refuse(&call, "neither runc nor crun was found; name one as `runtime` in partage-oci.conf");
    if (call_is(&call, "create") || call_is(&call, "run")) runtime = create(&call, &settings);
    if (call_is(&call, "delete")) tell_of_delete(&call, &settings);
    become(runtime, &call, argv);
}
