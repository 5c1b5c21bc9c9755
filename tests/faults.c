/* Lets the N-th system call that changes a file below a directory fail.
 *
 * Preloaded into a child; armed by faults_arm() or, from the first call on, by the environment:
 * FAULTS_PATH (prefix of the paths that count), FAULTS_AT (1 is the first call), FAULTS_MODE (see below).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum mode {
    COUNT,      /* fail nothing */
    KILL,       /* die before the call */
    EIO_ONCE,   /* the call reports an error */
    FULL_ONCE,  /* the disk is full, for that call */
    TORN,       /* a write with half its data, or the whole call; then die */
    FULL_FROM,  /* the disk is full from that call on: writes fail, the rest works */
    SLOW_SYNC,  /* an fsync takes as many milliseconds as `at` says: each of the main thread, one in SOME others */
    SLOW_DISK,  /* each fsync takes as many milliseconds longer as `at` says */
};

#define SOME 3

static char prefix[PATH_MAX];
static size_t prefix_length;
static long at;
static enum mode mode;
static atomic_long calls, syncs;
static atomic_int fired;

void faults_arm(const char *path, long nth, int how) {
    prefix_length = 0;
    snprintf(prefix, sizeof prefix, "%s", path);
    at = nth;
    mode = (enum mode)how;
    atomic_store(&calls, 0);
    atomic_store(&fired, 0);
    prefix_length = strlen(prefix);
}

long faults_calls(void) { return atomic_load(&calls); }
int faults_fired(void) { return atomic_load(&fired); }

__attribute__((constructor)) static void from_environment(void) {
    const char *path = getenv("FAULTS_PATH"), *nth = getenv("FAULTS_AT"), *how = getenv("FAULTS_MODE");
    if (path && nth && how) faults_arm(path, atol(nth), atoi(how));
}

static int counts(const char *path) {
    return prefix_length && path && strncmp(path, prefix, prefix_length) == 0;
}

static int fd_counts(int fd) {
    char link[64], path[PATH_MAX];
    if (!prefix_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return counts(path);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

enum kind { OTHER, WRITE, SYNC };

/* What the call has to do: 0 as usual, 1 tear, else the negative error. */
static int decide(int matches, enum kind kind) {
    if (!matches) return 0;
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (mode == SLOW_SYNC || mode == SLOW_DISK) {
        if (kind == SYNC
            && (mode == SLOW_DISK || gettid() == getpid() || atomic_fetch_add(&syncs, 1) % SOME == 0)) {
            struct timespec pause = {at / 1000, at % 1000 * 1000000L};
            atomic_store(&fired, 1);
            nanosleep(&pause, NULL);
        }
        return 0;
    }
    if (mode == FULL_FROM && number >= at && kind == WRITE) {
        atomic_store(&fired, 1);
        return -ENOSPC;
    }
    if (number != at || mode == COUNT || mode == FULL_FROM) return 0;
    atomic_store(&fired, 1);
    switch (mode) {
    case KILL: die(); return 0;
    case EIO_ONCE: return -EIO;
    case FULL_ONCE: return -ENOSPC;
    default: return 1;
    }
}

#define REAL(result, name, ...)                                                                                \
    static result (*real)(__VA_ARGS__);                                                                        \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define FAIL(decision)                                                                                         \
    if ((decision) < 0) {                                                                                      \
        errno = -(decision);                                                                                   \
        return -1;                                                                                             \
    }

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int decision = decide(prefix_length && fd_counts(fd), WRITE);
    FAIL(decision);
    if (decision) {
        real(fd, data, size / 2);
        die();
    }
    return real(fd, data, size);
}

#define PWRITE(name)                                                                                           \
    ssize_t name(int fd, const void *data, size_t size, off_t where) {                                         \
        REAL(ssize_t, #name, int, const void *, size_t, off_t);                                                \
        int decision = decide(prefix_length && fd_counts(fd), WRITE);                                          \
        FAIL(decision);                                                                                        \
        if (decision) {                                                                                        \
            real(fd, data, size / 2, where);                                                                   \
            die();                                                                                             \
        }                                                                                                      \
        return real(fd, data, size, where);                                                                    \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

/* A kill takes nothing from the system: only a slow disk has to be a disk. */
#define ON_FD(name, kind)                                                                                      \
    int name(int fd) {                                                                                         \
        REAL(int, #name, int);                                                                                 \
        int ours = prefix_length && fd_counts(fd);                                                             \
        int decision = decide(ours, kind);                                                                     \
        FAIL(decision);                                                                                        \
        int result = ours && mode < SLOW_SYNC ? 0 : real(fd);                                                  \
        if (decision) die();                                                                                   \
        return result;                                                                                         \
    }
ON_FD(fsync, SYNC)
ON_FD(fdatasync, SYNC)

#define TRUNCATE(name)                                                                                         \
    int name(int fd, off_t size) {                                                                             \
        REAL(int, #name, int, off_t);                                                                          \
        int decision = decide(prefix_length && fd_counts(fd), WRITE);                                          \
        FAIL(decision);                                                                                        \
        int result = real(fd, size);                                                                           \
        if (decision) die();                                                                                   \
        return result;                                                                                         \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    int decision = decide(counts(path), OTHER);
    FAIL(decision);
    int result = real(path);
    if (decision) die();
    return result;
}

#define TWO_PATHS(name)                                                                                        \
    int name(const char *from, const char *to) {                                                               \
        REAL(int, #name, const char *, const char *);                                                          \
        int decision = decide(counts(to), OTHER);                                                              \
        FAIL(decision);                                                                                        \
        int result = real(from, to);                                                                           \
        if (decision) die();                                                                                   \
        return result;                                                                                         \
    }
TWO_PATHS(rename)
TWO_PATHS(link)

#define OPEN(name)                                                                                             \
    int name(const char *path, int flags, ...) {                                                               \
        REAL(int, #name, const char *, int, ...);                                                              \
        mode_t rights = 0;                                                                                     \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                   \
            va_list arguments;                                                                                 \
            va_start(arguments, flags);                                                                        \
            rights = va_arg(arguments, mode_t);                                                                \
            va_end(arguments);                                                                                 \
        }                                                                                                      \
        int decision = decide(counts(path), OTHER);                                                            \
        FAIL(decision);                                                                                        \
        int result = real(path, flags, rights);                                                                \
        if (decision) die();                                                                                   \
        return result;                                                                                         \
    }
OPEN(open)
OPEN(open64)
