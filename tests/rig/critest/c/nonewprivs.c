/* Says as whom it runs. Its file is root's and set-user-ID, so that is root unless gaining privileges was forbidden. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
    printf("Effective uid: %d\n", (int)geteuid());
    return 0;
}
