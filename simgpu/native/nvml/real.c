/* Has the address of every REAL name of names.def, so that one without a definition does not link. */
#define REAL(name) void name(void);
#define ABSENT(name)
#include "names.def"
#undef REAL

#define REAL(name) name,
static void (*const real[])(void) __attribute__((used)) = {
#include "names.def"
};
