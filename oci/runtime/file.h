/* Reads and writes whole files. Failures set errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Reads to the end, and adds a terminating zero; the caller frees it. NULL, with EFBIG for more than `most` bytes. */
char *file_read_all(int descriptor, size_t most, size_t *bytes);

/* The same for a regular file. */
char *file_read(const char *path, size_t most, size_t *bytes, struct stat *found);

/* Replaces the file atomically, keeping its mode and owner. */
bool file_replace(const char *path, const char *text, size_t bytes, const struct stat *like);
