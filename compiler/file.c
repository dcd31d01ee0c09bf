#include "file.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(Diags *diags, const char *what, const char *path) {
    return diag_plain(diags, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* Reads to the end, or a little more than `most` bytes; a file's size is only a first guess, since pipes have none. */
static bool read_all(Arena *arena, int fd, size_t guess, size_t most, Str *text) {
    size_t cap = guess + 1, n = 0;
    char *at = arena_new(arena, char, cap);
    while (n <= most) {
        ssize_t got = read(fd, at + n, cap - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            *text = (Str){at, (uint32_t)n};
            return got == 0;
        }
        n += (size_t)got;
        if (n < cap) continue;
        char *old = at;
        at = arena_new(arena, char, cap *= 2);
        memcpy(at, old, n);
    }
    errno = EFBIG;
    return false;
}

bool file_read(Arena *arena, Diags *diags, const char *path, uint32_t most, Str *text) {
    bool input = strcmp(path, "-") == 0;
    int fd = input ? 0 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(diags, "open", path);
    struct stat st;
    size_t guess = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (size_t)st.st_size : 65536;
    errno = EFBIG;
    bool ok = guess <= most && read_all(arena, fd, guess, most, text);
    if (!ok && errno == EFBIG)
        diag_plain(diags, "%s%s%s has more than %u bytes, which is the limit", input ? "" : "'",
                   input ? "standard input" : path, input ? "" : "'", most);
    else if (!ok)
        fail(diags, "read", input ? "standard input" : path);
    if (!input) close(fd);
    return ok;
}

bool file_put(int fd, Str text) {
    for (size_t n = 0; n < text.n;) {
        ssize_t put = write(fd, text.at + n, text.n - n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        n += (size_t)put;
    }
    return true;
}

bool file_is_regular(const char *path) {
    struct stat st;
    return strcmp(path, "-") != 0 && (stat(path, &st) < 0 || S_ISREG(st.st_mode));
}

bool file_write(Diags *diags, const char *path, const char *shown, Str text) {
    if (strcmp(path, "-") == 0) return file_put(1, text) || fail(diags, "write", "standard output");
    struct stat st; /* devices and pipes are not replaced */
    bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int fd = open(path, O_WRONLY | O_CLOEXEC | (special ? 0 : O_CREAT | O_TRUNC), 0666);
    if (fd < 0) return fail(diags, "write", shown);
    bool ok = file_put(fd, text);
    int why = errno;
    if (close(fd)) ok = false, why = errno;
    errno = why;
    return ok || fail(diags, "write", shown);
}

Str path_base(Str path) {
    for (uint32_t i = path.n; i > 0; i--)
        if (path.at[i - 1] == '/') return (Str){path.at + i, path.n - i};
    return path;
}

Str path_stem(Str path) {
    for (uint32_t i = path.n; i > 1 && path.at[i - 1] != '/'; i--)
        if (path.at[i - 1] == '.' && path.at[i - 2] != '/') return (Str){path.at, i - 1};
    return path;
}
