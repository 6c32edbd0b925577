/* Says by which libc it was started, then what is mapped into it, one path a line: so one sees what was preloaded. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

int main(void) {
#ifdef __GLIBC__
    printf("glibc %s\n", gnu_get_libc_version());
#else
    puts("musl");
#endif
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128], last[PATH_MAX + 128] = "";
    if (!maps) return 1;
    while (fgets(line, sizeof line, maps)) {
        const char *path = strchr(line, '/');
        if (path && strcmp(path, last) != 0) fputs(strcpy(last, path), stdout);
    }
    return fclose(maps) != 0;
}
