/* A drive that stalls: opening, or reading, a file whose path holds $STALLED takes $STALL_S. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int stalled_fd = -1;

static void stall(void) { sleep((unsigned)atoi(getenv("STALL_S"))); }

static int opened(const char *name, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, mode_t) = dlsym(RTLD_NEXT, name);
    const char *part = getenv("STALLED"), *what = getenv("STALL_AT");
    int is_it = part && what && strstr(path, part) != NULL;
    if (is_it && strcmp(what, "open") == 0) stall();
    int fd = real(path, flags, mode);
    if (is_it && strcmp(what, "read") == 0) stalled_fd = fd;
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & O_CREAT ? (mode_t)va_arg(rest, unsigned) : 0;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    return opened("open", path, flags, mode_of(flags, rest));
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    return opened("open64", path, flags, mode_of(flags, rest));
}

ssize_t read(int fd, void *to, size_t n) {
    ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    if (fd == stalled_fd) stall();
    return real(fd, to, n);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    if (fd == stalled_fd) stall();
    return real(fd, to, n, at);
}
