/* Output lines, and functions by name. */
#include "conformance.h"
#include "run.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *case_name;

void begin_case(const char *name) { case_name = name; }

/* One write, so that two processes of a case do not mix their lines. */
void tell(const char *fact, const char *format, ...) {
    char value[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    for (char *c = value; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' '; /* the text of dlerror may contain any character */
    dprintf(STDOUT_FILENO, "%s.%s = %s\n", case_name, fact, value);
}

static _Noreturn void end(const char *how, const char *format, va_list arguments) {
    char why[200];
    vsnprintf(why, sizeof why, format, arguments);
    tell(OUTCOME, "%s: %s", how, why);
    _exit(0);
}

void skip(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end("skipped", format, arguments);
}

void stop(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end("stopped", format, arguments);
}

void tell_number(const char *fact, u64 value) { tell(fact, "%llu", (unsigned long long)value); }
void tell_yes(const char *fact, bool value) { tell(fact, value ? "yes" : "no"); }

/* ---- codes ------------------------------------------------------------------------------------------------------- */

struct code {
    u32 number;
    const char *name;
};

#define ERROR(name, number, words) {number, #name},
static const struct code cuda_codes[] = {
#include "driver/cuda_errors.def"
    {0, NULL},
};

#define ERROR(name, number, words) {number, #name},
static const struct code nvml_codes[] = {
#include "driver/nvml_errors.def"
    {0, NULL},
};

/* Unknown numbers are printed as they are. */
static const char *named(const struct code *codes, u32 number) {
    static char text[32];
    for (const struct code *each = codes; each->name; each++)
        if (each->number == number) return each->name;
    snprintf(text, sizeof text, "code %u", number);
    return text;
}

void tell_cuda(const char *fact, CUresult code) { tell(fact, "%s", named(cuda_codes, code)); }
void tell_nvml(const char *fact, nvml_result code) { tell(fact, "%s", named(nvml_codes, code)); }

void need(const char *name, CUresult code) {
    if (code) stop("%s answered %s", name, named(cuda_codes, code));
}

void need_nvml(const char *name, nvml_result code) {
    if (code) stop("%s answered %s", name, named(nvml_codes, code));
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void *symbol(void **library, const char *file, const char *name) {
    if (!*library) *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!*library) stop("no driver: %s", dlerror());
    void *found = dlsym(*library, name);
    if (!found) stop("missing %s", name);
    return found;
}

void *cuda_symbol(const char *name) {
    static void *library;
    return symbol(&library, "libcuda.so.1", name);
}

void *nvml_symbol(const char *name) {
    static void *library;
    return symbol(&library, "libnvidia-ml.so.1", name);
}
