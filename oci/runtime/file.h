/* Whole files. What fails says why in errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* All that comes, with a zero behind it; the caller frees it. NULL, with EFBIG for more than `most` bytes. */
char *file_read_all(int descriptor, size_t most, size_t *bytes);

/* The same of a regular file. */
char *file_read(const char *path, size_t most, size_t *bytes, struct stat *found);

/* Puts another file in its place, of the same mode and owner, whole or not at all. */
bool file_replace(const char *path, const char *text, size_t bytes, const struct stat *like);
