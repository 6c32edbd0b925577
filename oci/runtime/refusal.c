#include "refusal.h"

#include "alloc.h"
#include "json.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The file of --log; crun allows a log type as its prefix. NULL: not a file. */
static const char *log_path(const char *log) {
    if (!strncmp(log, "file:", 5)) return log + 5;
    return *log && strncmp(log, "journald:", 9) && strncmp(log, "syslog:", 7) ? log : NULL;
}

/* Writes the format of runc, which engines parse. If the file cannot be written, only stderr remains. */
static void log_error(const char *path, bool is_json, const char *sentence) {
    char when[sizeof "2026-01-01T00:00:00Z"];
    const time_t now = time(NULL);
    strftime(when, sizeof when, "%FT%TZ", gmtime(&now));
    const int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (descriptor == -1) return;
    dprintf(descriptor,
            is_json ? "{\"level\":\"error\",\"msg\":%s,\"time\":\"%s\"}\n" : "level=error msg=%s time=\"%s\"\n",
            json_quoted(sentence), when);
    close(descriptor);
}

void refuse(const struct call *call, const char *format, ...) {
    char *what = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&what, format, arguments) < 0) what = NULL;
    va_end(arguments);
    char *sentence = formatted("partage: %s", (char *)checked(what));
    for (char *byte = sentence; *byte; byte++) /* keep it to one line */
        if ((unsigned char)*byte < ' ' || *byte == 0x7f) *byte = ' ';
    const char *path = call ? log_path(call->log) : NULL;
    if (path) log_error(path, call->log_is_json, sentence);
    fprintf(stderr, "%s\n", sentence);
    exit(EXIT_FAILURE);
}
