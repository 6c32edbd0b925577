/* Uses no CUDA: counts open files, and prints whether a driver was loaded. */
#include "program.h"

#include <dirent.h>

int main(void) {
    char line[4096];
    int count = 0, drivers = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) count++;
    closedir(folder);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) drivers += strstr(line, "/driver/") != NULL;
    fclose(maps);
    printf("%d %d\n", count, drivers);
}
