/* Writing .npy and .npz, in the formats of npz.c. */
#include "npz.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

typedef struct {
    FILE *f;
    uint64_t at;
} Sink;

static void put_bytes(Sink *s, const void *p, size_t n) {
    if (n) fwrite(p, 1, n, s->f);
    s->at += n;
}

static void put(Sink *s, uint64_t x, unsigned n) {
    unsigned char b[8];
    for (unsigned i = 0; i < n; i++) b[i] = (unsigned char)(x >> 8 * i);
    put_bytes(s, b, n);
}

/* The header as numpy writes it: padded with spaces to a multiple of 64, ended by a newline. */
static size_t npy_header(const NpzArray *a, char *h, size_t room) {
    uint16_t one = 1;
    char order = a->size == 1 ? '|' : *(uint8_t *)&one ? '<' : '>';
    int n =
        snprintf(h, room, "%10s{'descr': '%c%c%u', 'fortran_order': False, 'shape': (", "", order, a->kind, a->size);
    for (uint32_t i = 0; i < a->rank; i++)
        n += snprintf(h + n, room - (size_t)n, "%s%lld%s", i ? ", " : "", (long long)a->dims[i],
                      a->rank == 1 ? "," : "");
    n += snprintf(h + n, room - (size_t)n, "), }");
    while ((n + 1) % 64) h[n++] = ' ';
    h[n++] = '\n';
    memcpy(h, "\x93NUMPY\1", 8);
    h[8] = (char)((n - 10) & 255);
    h[9] = (char)((n - 10) >> 8);
    return (size_t)n;
}

enum { NPY_HEADER = 2048 };

static void put_npy(Sink *s, const NpzArray *a) {
    char h[NPY_HEADER];
    put_bytes(s, h, npy_header(a, h, sizeof h));
    put_bytes(s, a->data, (size_t)a->bytes);
}

typedef struct {
    uint64_t offset, size;
    uint32_t crc;
} Written;

/* A local header (offset 0) or an entry of the central directory. Large sizes are in a zip64 field. */
static void put_entry(Sink *s, const char *name, const Written *w, bool central) {
    bool large = w->size >= UINT32_MAX || (central && w->offset >= UINT32_MAX);
    put(s, central ? 0x02014b50 : 0x04034b50, 4);
    if (central) put(s, 45, 2);
    put(s, 45, 2);         /* version 4.5 reads it */
    put(s, 0, 2 + 2);      /* flags, stored */
    put(s, 0x00210000, 4); /* 1980-01-01 */
    put(s, w->crc, 4);
    put(s, large ? UINT32_MAX : w->size, 4);
    put(s, large ? UINT32_MAX : w->size, 4);
    put(s, strlen(name) + 4, 2);
    put(s, large ? (central ? 28 : 20) : 0, 2);
    if (central) {
        put(s, 0, 2 + 2 + 2); /* comment, disk, text */
        put(s, 0600 << 16, 4);
        put(s, large ? UINT32_MAX : w->offset, 4);
    }
    put_bytes(s, name, strlen(name));
    put_bytes(s, ".npy", 4);
    if (!large) return;
    put(s, 1, 2);
    put(s, central ? 24 : 16, 2);
    put(s, w->size, 8);
    put(s, w->size, 8);
    if (central) put(s, w->offset, 8);
}

static void put_end(Sink *s, uint64_t n, uint64_t directory) {
    uint64_t size = s->at - directory, record = s->at;
    bool large = n >= UINT16_MAX || size >= UINT32_MAX || directory >= UINT32_MAX;
    if (large) {
        put(s, 0x06064b50, 4);
        put(s, 44, 8);
        put(s, 45 | 45 << 16, 4);
        put(s, 0, 8); /* disks */
        put(s, n, 8);
        put(s, n, 8);
        put(s, size, 8);
        put(s, directory, 8);
        put(s, 0x07064b50, 4);
        put(s, 0, 4);
        put(s, record, 8);
        put(s, 1, 4);
    }
    put(s, 0x06054b50, 4);
    put(s, 0, 4);
    put(s, large ? UINT16_MAX : n, 2);
    put(s, large ? UINT16_MAX : n, 2);
    put(s, large ? UINT32_MAX : size, 4);
    put(s, large ? UINT32_MAX : directory, 4);
    put(s, 0, 2);
}

static void put_npz(Sink *s, const NpzArray *at, uint32_t n, Written *done) {
    char h[NPY_HEADER];
    for (uint32_t i = 0; i < n; i++) {
        size_t header = npy_header(&at[i], h, sizeof h);
        uint32_t crc = (uint32_t)crc32_z(0, (unsigned char *)h, header);
        if (at[i].bytes) crc = (uint32_t)crc32_z(crc, at[i].data, (z_size_t)at[i].bytes);
        done[i] = (Written){s->at, header + (uint64_t)at[i].bytes, crc};
        put_entry(s, at[i].name, &done[i], false);
        put_npy(s, &at[i]);
    }
    uint64_t directory = s->at;
    for (uint32_t i = 0; i < n; i++) put_entry(s, at[i].name, &done[i], true);
    put_end(s, n, directory);
}

/* ---- files */

typedef struct {
    bool npy;
    const NpzArray *at;
    uint32_t n;
} Arrays;
static bool put_arrays(FILE *f, const void *arrays) {
    const Arrays *a = arrays;
    Written *done = calloc(a->n + 1, sizeof *done);
    Sink s = {.f = f};
    if (done && a->npy) put_npy(&s, a->at);
    if (done && !a->npy) put_npz(&s, a->at, a->n, done);
    free(done);
    return done;
}
static bool write_to(FILE *f, bool (*write)(FILE *, const void *), const void *user) {
    bool good = write(f, user) && !ferror(f);
    return !fclose(f) && good;
}

/* The name of the unfinished file, for signal handlers; changed while signals are blocked. */
static char *volatile unfinished;

void npz_abandon(void) {
    int saved = errno;
    if (unfinished) unlink(unfinished);
    unfinished = NULL;
    errno = saved;
}

static sigset_t hold_signals(void) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    return old;
}

/* Creates a new file PATH.tmpPID-N, never an existing one. Returns its name, to be freed by the caller, or NULL with
   errno. */
static char *create(const char *path, FILE **f) {
    enum { TRIES = 1000 };
    char *name = NULL;
    int fd = -1;
    sigset_t old = hold_signals();
    for (unsigned i = 0; fd < 0 && i < TRIES; i++) {
        free(name);
        name = NULL;
        if (asprintf(&name, "%s.tmp%ld-%u", path, (long)getpid(), i) < 0) break;
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd >= 0) unfinished = name;
    *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !*f) npz_abandon(), close(fd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (*f) return name;
    free(name);
    return NULL;
}

static bool write_beside(const char *path, bool (*write)(FILE *, const void *), const void *user) {
    FILE *f;
    char *name = create(path, &f);
    if (!name) return false;
    bool good = write_to(f, write, user);
    sigset_t old = hold_signals();
    good = good && !rename(name, path);
    if (good)
        unfinished = NULL;
    else
        npz_abandon();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    free(name);
    return good;
}

bool npz_write_file(const char *path, bool (*write)(FILE *, const void *), const void *user, NpzError *e) {
    struct stat st;
    bool direct = !stat(path, &st) && !S_ISREG(st.st_mode);
    FILE *f = direct ? fopen(path, "wb") : NULL;
    bool good = direct ? f && write_to(f, write, user) : write_beside(path, write, user);
    if (!good) snprintf(e->text, sizeof e->text, "cannot write '%.200s': %s", path, strerror(errno));
    return good;
}
bool npz_write(const char *path, bool npy, const NpzArray *at, uint32_t n, NpzError *e) {
    return npz_write_file(path, put_arrays, &(Arrays){npy, at, n}, e);
}
