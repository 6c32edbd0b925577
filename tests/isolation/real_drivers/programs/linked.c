/* Prints, as JSON, the names that the dynamic linker finds for a program linked with the driver's library. */
#include <stdio.h>

#define NAME(name) extern void name(void) __attribute__((weak));
#include NAMES

static const struct {
    const char *name;
    void (*function)(void);
} names[] = {
#define NAME(name) {#name, name},
#include NAMES
};

int main(void) {
    const char *separator = "[";
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].function) printf("%s\"%s\"", separator, names[i].name), separator = ", ";
    puts("]");
}
