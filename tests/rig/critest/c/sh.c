/* The shell of critest's images: the busybox's own, but a command of one plain word is looked for in PATH, as POSIX has
 * it. A static busybox is built to prefer its applets to files, so it would run `ls` where the runtime masked /bin/ls.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyz";

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "-c") == 0 && words[2][0] != '\0' && words[2][strspn(words[2], plain)] == '\0') {
        char *const command[] = {words[2], NULL};
        execvp(words[2], command);
        if (errno != ENOENT) {
            fprintf(stderr, "%s: %s: %s\n", words[0], words[2], strerror(errno));
            return 126;
        }
    }
    execv("/bin/busybox", words); /* which goes by the name in words[0] */
    return 127;
}
