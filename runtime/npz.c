/* Reading .npy and .npz. A .npz is a zip archive of .npy members, stored or deflated. A .npy is
   "\x93NUMPY", version, the length of a header, the header (a Python dict: descr, fortran_order,
   shape), the elements. Formats: numpy's lib/format.py; PKWARE's APPNOTE 6.3. */
#include "npz.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

__attribute__((format(printf, 2, 3))) static bool wrong(NpzError *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return false;
}

/* ---- types */

static const NpzType types[] = {
    {"bool", 'b', 1, 0, false, "np.bool_"},
    {"i2", 'i', 1, 0, true, "ml_dtypes.int2"},
    {"i4", 'i', 1, 0, true, "ml_dtypes.int4"},
    {"i8", 'i', 1, 0, false, "np.int8"},
    {"i16", 'i', 2, 0, false, "np.int16"},
    {"i32", 'i', 4, 0, false, "np.int32"},
    {"i64", 'i', 8, 0, false, "np.int64"},
    {"u2", 'u', 1, 0, true, "ml_dtypes.uint2"},
    {"u4", 'u', 1, 0, true, "ml_dtypes.uint4"},
    {"u8", 'u', 1, 0, false, "np.uint8"},
    {"u16", 'u', 2, 0, false, "np.uint16"},
    {"u32", 'u', 4, 0, false, "np.uint32"},
    {"u64", 'u', 8, 0, false, "np.uint64"},
    {"f4_e2m1fn", 'u', 1, 0, true, "ml_dtypes.float4_e2m1fn"},
    {"f8_e3m4", 'u', 1, 0, true, "ml_dtypes.float8_e3m4"},
    {"f8_e4m3", 'u', 1, 0, true, "ml_dtypes.float8_e4m3"},
    {"f8_e4m3b11fnuz", 'u', 1, 0, true, "ml_dtypes.float8_e4m3b11fnuz"},
    {"f8_e4m3fn", 'u', 1, 0, true, "ml_dtypes.float8_e4m3fn"},
    {"f8_e4m3fnuz", 'u', 1, 0, true, "ml_dtypes.float8_e4m3fnuz"},
    {"f8_e5m2", 'u', 1, 0, true, "ml_dtypes.float8_e5m2"},
    {"f8_e5m2fnuz", 'u', 1, 0, true, "ml_dtypes.float8_e5m2fnuz"},
    {"f8_e8m0fnu", 'u', 1, 0, true, "ml_dtypes.float8_e8m0fnu"},
    {"bf16", 'u', 2, 0, true, "ml_dtypes.bfloat16"},
    {"f16", 'f', 2, 0, true, "np.float16"},
    {"f32", 'f', 4, 0, false, "np.float32"},
    {"f64", 'f', 8, 0, false, "np.float64"},
    {"c64", 'c', 8, 0, false, "np.complex64"},
    {"c128", 'c', 16, 0, false, "np.complex128"},
    {"key<fry>", 'u', 4, 2, false, "np.uint32"},
    {"key<rbg>", 'u', 4, 4, false, "np.uint32"},
    {"key<urbg>", 'u', 4, 4, false, "np.uint32"},
};

const NpzType *npz_type(const char *dtype) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].dtype, dtype)) return &types[i];
    return NULL;
}

bool npz_holds(const NpzArray *a, const NpzType *t) {
    if (a->size != t->size) return false;
    if (a->kind == t->kind) return true;
    return t->bits && (a->kind == 'u' || a->kind == 'V' || (a->size == 1 && strchr("if", a->kind)));
}

static bool known_type(char kind, unsigned size) {
    switch (kind) {
    case 'b': return size == 1;
    case 'i':
    case 'u':
    case 'f': return size == 1 || size == 2 || size == 4 || size == 8;
    case 'c': return size == 8 || size == 16;
    case 'V': return size == 1 || size == 2;
    default: return false;
    }
}

/* ---- bytes of a member, in order */

typedef struct {
    int fd;
    int64_t at, packed; /* offset of the next bytes in the file; how many are left there */
    int64_t left;       /* bytes that are left to deliver */
    bool deflated;
    z_stream z;
    uint32_t crc;
    unsigned char *map; /* of the file, for arrays that can stay there; or NULL */
    const char *folder; /* for the files of large arrays; NULL: memory */
    unsigned char buffer[1 << 15];
} Source;

static bool read_at(int fd, int64_t at, void *to, size_t n) {
    for (char *p = to; n;) {
        ssize_t k = pread(fd, p, n < 1 << 30 ? n : 1 << 30, at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static bool source_inflate(Source *s, unsigned char *to, int64_t n) {
    while (n) {
        if (!s->z.avail_in && s->packed) {
            size_t k = s->packed < (int64_t)sizeof s->buffer ? (size_t)s->packed : sizeof s->buffer;
            if (!read_at(s->fd, s->at, s->buffer, k)) return false;
            s->z.next_in = s->buffer;
            s->z.avail_in = (uInt)k;
            s->at += (int64_t)k;
            s->packed -= (int64_t)k;
        }
        uInt room = n < 1 << 30 ? (uInt)n : 1 << 30;
        s->z.next_out = to;
        s->z.avail_out = room;
        int status = inflate(&s->z, Z_NO_FLUSH);
        int64_t got = room - s->z.avail_out;
        to += got;
        n -= got;
        if (status == Z_STREAM_END) return n == 0;
        if (status != Z_OK || (!got && !s->z.avail_in && !s->packed)) return false;
    }
    return true;
}

static bool source_read(Source *s, void *to, int64_t n) {
    if (n > s->left) return false;
    if (s->deflated) {
        if (!source_inflate(s, to, n)) return false;
    } else {
        if (!read_at(s->fd, s->at, to, (size_t)n)) return false;
        s->at += n;
    }
    s->left -= n;
    s->crc = (uint32_t)crc32_z(s->crc, to, (z_size_t)n);
    return true;
}

/* Reads and discards, for the checksum. */
static bool source_pass(Source *s, int64_t n) {
    for (int64_t k; n; n -= k) {
        k = n < (int64_t)sizeof s->buffer ? n : (int64_t)sizeof s->buffer;
        if (!source_read(s, s->buffer, k)) return false;
    }
    return true;
}

/* ---- memory of elements */

enum { LARGE = 1 << 20 };

/* Opens an unnamed file; -1 on failure. */
static int nameless(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char *path;
    if (fd >= 0 || asprintf(&path, "%s/jaxcc-XXXXXX", folder) < 0) return fd;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    free(path);
    return fd;
}

/* Memory mapped from an unnamed file with allocated blocks; NULL on failure. */
static void *file_memory(const char *folder, int64_t n) {
    int fd = nameless(folder);
    if (fd < 0) return NULL;
    void *at =
        posix_fallocate(fd, 0, n) ? MAP_FAILED : mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static bool allocate(const Source *s, NpzArray *a) {
    a->place = NPZ_MAPPED;
    a->data = s->folder && a->bytes >= LARGE ? file_memory(s->folder, a->bytes) : NULL;
    if (a->data) return true;
    a->place = NPZ_MEMORY;
    a->data = malloc((size_t)a->bytes + !a->bytes);
    return a->data != NULL;
}

static void release(NpzArray *a) {
    if (a->place == NPZ_MEMORY) free(a->data);
    if (a->place == NPZ_MAPPED) munmap(a->data, (size_t)a->bytes);
    a->data = NULL;
}

/* Leaves pages of such memory that are not in use to the page cache. */
static void relieve(const NpzArray *a) {
    if (a->place == NPZ_MAPPED) madvise(a->data, (size_t)a->bytes, MADV_DONTNEED);
}

/* ---- the header of a .npy */

typedef struct {
    const char *at, *end;
} Scan;

static void skip_space(Scan *s) {
    while (s->at < s->end && strchr(" \t\n\r", *s->at) && *s->at) s->at++;
}

static bool take(Scan *s, char c) {
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* A string in either quote, into `to` (terminated). */
static bool take_string(Scan *s, char *to, size_t room) {
    char quote = take(s, '\'') ? '\'' : take(s, '"') ? '"' : 0;
    size_t n = 0;
    while (quote && s->at < s->end && *s->at != quote && n + 1 < room) to[n++] = *s->at++;
    to[n] = 0;
    bool ended = quote && s->at < s->end && *s->at == quote;
    s->at += ended;
    return ended;
}

static bool take_word(Scan *s, const char *word) {
    skip_space(s);
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n)) return false;
    s->at += n;
    return true;
}

static bool take_number(Scan *s, int64_t *x) {
    skip_space(s);
    const char *start = s->at;
    for (*x = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(*x, 10, x) || __builtin_add_overflow(*x, *s->at - '0', x)) return false;
    bool good = s->at > start;
    take(s, 'L'); /* Python 2 */
    return good;
}

static bool take_shape(Scan *s, NpzArray *a) {
    if (!take(s, '(')) return false;
    for (a->rank = 0; !take(s, ')'); a->rank++) {
        if (a->rank == NPZ_RANK || !take_number(s, &a->dims[a->rank])) return false;
        if (!take(s, ',')) return take(s, ')') && (a->rank++, true);
    }
    return true;
}

typedef struct {
    bool swapped, fortran;
} Layout;

static bool take_descr(const char *descr, NpzArray *a, Layout *l) {
    unsigned size;
    char order, kind, more;
    if (sscanf(descr, "%c%c%2u%c", &order, &kind, &size, &more) != 3) return false;
    if (!strchr("<>|=", order) || !known_type(kind, size)) return false;
    uint16_t one = 1;
    bool little = *(uint8_t *)&one;
    a->kind = kind;
    a->size = (uint8_t)size;
    l->swapped = size > 1 && kind != 'V' && order == (little ? '>' : '<');
    return true;
}

static bool parse_header(Scan s, NpzArray *a, Layout *l, char *descr, size_t room) {
    char key[32];
    unsigned seen = 0;
    if (!take(&s, '{')) return false;
    while (!take(&s, '}')) {
        if (!take_string(&s, key, sizeof key) || !take(&s, ':')) return false;
        if (!strcmp(key, "descr")) {
            if (!take_string(&s, descr, room)) return false;
            seen |= 1;
        } else if (!strcmp(key, "fortran_order")) {
            l->fortran = take_word(&s, "True");
            if (!l->fortran && !take_word(&s, "False")) return false;
            seen |= 2;
        } else if (!strcmp(key, "shape")) {
            if (!take_shape(&s, a)) return false;
            seen |= 4;
        } else
            return false;
        if (!take(&s, ',')) return take(&s, '}') && seen == 7;
    }
    return seen == 7;
}

/* size · Π dims; 0 if a dimension is 0, false if it overflows 63 bits. */
static bool count_bytes(NpzArray *a) {
    a->bytes = a->size;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] == 0) return a->bytes = 0, true;
    for (uint32_t i = 0; i < a->rank; i++)
        if (__builtin_mul_overflow(a->bytes, a->dims[i], &a->bytes)) return false;
    return true;
}

enum { HEADER_MOST = 1 << 20 };

static bool read_header(Source *s, NpzArray *a, Layout *l, NpzError *e) {
    unsigned char start[12];
    char descr[64] = "";
    if (!source_read(s, start, 10) || memcmp(start, "\x93NUMPY", 6)) return wrong(e, "it is no .npy");
    uint32_t n = start[8] | (uint32_t)start[9] << 8;
    if (start[6] < 1 || start[6] > 3) return wrong(e, "version %u of .npy is unknown", start[6]);
    if (start[6] > 1) {
        if (!source_read(s, start + 10, 2)) return wrong(e, "its header is cut off");
        n |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
    }
    if (n > HEADER_MOST || n > s->left) return wrong(e, "its header is cut off or too long");
    char *text = malloc(n + 1);
    if (!text) return wrong(e, "no memory");
    bool good = source_read(s, text, n) && parse_header((Scan){text, text + n}, a, l, descr, sizeof descr);
    free(text);
    if (!good) return wrong(e, "its header cannot be read");
    if (!take_descr(descr, a, l)) return wrong(e, "elements of type '%s' are no numbers that jaxcc knows", descr);
    if (!count_bytes(a) || a->bytes > s->left)
        return wrong(e, "it is cut off: the shape needs more bytes than there are");
    if (a->bytes < s->left) return wrong(e, "there are more bytes than the shape needs");
    return true;
}

/* ---- elements */

static void swap_bytes(NpzArray *a) {
    size_t n = a->kind == 'c' ? a->size / 2 : a->size;
    for (unsigned char *p = a->data, *end = p + a->bytes; p < end; p += n)
        for (size_t i = 0; i < n / 2; i++) {
            unsigned char c = p[i];
            p[i] = p[n - 1 - i];
            p[n - 1 - i] = c;
        }
}

/* Column-major → row-major, walking the result in order. */
static bool reorder(const Source *s, NpzArray *a) {
    int64_t at[NPZ_RANK] = {0}, stride[NPZ_RANK], from = 0;
    NpzArray to = *a;
    if (!allocate(s, &to)) return false;
    char *out = to.data;
    int64_t step = a->size;
    for (uint32_t i = 0; i < a->rank; i++) stride[i] = step, step *= a->dims[i];
    for (int64_t left = a->bytes; left > 0; left -= a->size, out += a->size) {
        memcpy(out, (char *)a->data + from, a->size);
        for (uint32_t i = a->rank; i-- > 0;) {
            from += stride[i];
            if (++at[i] < a->dims[i]) break;
            from -= stride[i] * at[i];
            at[i] = 0;
        }
    }
    release(a);
    *a = to;
    return true;
}

/* In pieces, so that few pages are in use at once. */
static bool read_elements(Source *s, NpzArray *a) {
    enum { PIECE = 1 << 26 };
    for (int64_t at = 0, n; at < a->bytes; at += n) {
        n = a->bytes - at < PIECE ? a->bytes - at : PIECE;
        if (!source_read(s, (char *)a->data + at, n)) return false;
        relieve(a);
    }
    return true;
}

static bool read_array(Source *s, NpzArray *a, NpzError *e) {
    Layout l = {0};
    if (!read_header(s, a, &l, e)) return false;
    bool reordered = l.fortran && a->rank > 1 && a->bytes;
    if (s->map && !s->deflated && !l.swapped && !reordered) {
        a->place = NPZ_INSIDE;
        a->data = s->map + s->at;
        return source_pass(s, a->bytes) || wrong(e, "its bytes cannot be read");
    }
    if (!allocate(s, a)) return wrong(e, "no memory for %lld bytes", (long long)a->bytes);
    if (!read_elements(s, a)) return wrong(e, "its bytes cannot be read");
    if (l.swapped) swap_bytes(a);
    if (reordered && !reorder(s, a)) return wrong(e, "no memory");
    relieve(a);
    return true;
}

/* ---- zip */

static uint64_t get(const unsigned char *p, unsigned n) {
    uint64_t x = 0;
    while (n--) x = x << 8 | p[n];
    return x;
}

typedef struct {
    const char *name;
    uint32_t name_n, crc;
    unsigned method, flags;
    uint64_t packed, size, offset;
} Member;

/* Numbers that do not fit 32 bits are in the extra field number 1, in this order. */
static bool zip64_field(const unsigned char *extra, uint64_t n, Member *m) {
    uint64_t *field[] = {&m->size, &m->packed, &m->offset};
    while (n >= 4) {
        uint64_t id = get(extra, 2), k = get(extra + 2, 2);
        if (k > n - 4) return false;
        const unsigned char *p = extra + 4;
        for (unsigned i = 0; id == 1 && i < 3; i++) {
            if (*field[i] != UINT32_MAX) continue;
            if (k < 8) return false;
            *field[i] = get(p, 8);
            p += 8;
            k -= 8;
        }
        uint64_t whole = 4 + get(extra + 2, 2);
        extra += whole;
        n -= whole;
    }
    return true;
}

/* The entry of the central directory at `*p`, which is advanced. */
static bool next_member(const unsigned char **p, const unsigned char *end, Member *m) {
    const unsigned char *h = *p;
    if (end - h < 46 || memcmp(h, "PK\1\2", 4)) return false;
    uint64_t name = get(h + 28, 2), extra = get(h + 30, 2), comment = get(h + 32, 2);
    if ((uint64_t)(end - h) < 46 + name + extra + comment) return false;
    *m = (Member){(const char *)h + 46,    (uint32_t)name, (uint32_t)get(h + 16, 4), (unsigned)get(h + 10, 2),
                  (unsigned)get(h + 8, 2), get(h + 20, 4), get(h + 24, 4),           get(h + 42, 4)};
    *p = h + 46 + name + extra + comment;
    return zip64_field(h + 46 + name, extra, m);
}

typedef struct {
    int fd;
    int64_t size;
    unsigned char *directory;
    uint64_t directory_n, members;
    uint64_t read; /* packed bytes of the members so far: no byte is read twice */
} Zip;

static bool zip64_end(Zip *z, int64_t end_at, uint64_t *at) {
    unsigned char b[56];
    if (end_at < 20 || !read_at(z->fd, end_at - 20, b, 20) || memcmp(b, "PK\6\7", 4)) return false;
    uint64_t record = get(b + 8, 8);
    if (record > (uint64_t)z->size || !read_at(z->fd, (int64_t)record, b, 56) || memcmp(b, "PK\6\6", 4)) return false;
    z->members = get(b + 32, 8);
    z->directory_n = get(b + 40, 8);
    *at = get(b + 48, 8);
    return true;
}

/* Finds the end record, which a comment of at most 65535 bytes may follow, and reads the central directory. */
static bool read_directory(Zip *z) {
    int64_t n = z->size < 65557 ? z->size : 65557, at = n - 22;
    unsigned char *tail = malloc((size_t)n);
    bool good = tail && read_at(z->fd, z->size - n, tail, (size_t)n);
    while (good && at >= 0 && memcmp(tail + at, "PK\5\6", 4)) at--;
    good = good && at >= 0;
    uint64_t where = 0;
    if (good) {
        z->members = get(tail + at + 10, 2);
        z->directory_n = get(tail + at + 12, 4);
        where = get(tail + at + 16, 4);
        if (z->members == UINT16_MAX || z->directory_n == UINT32_MAX || where == UINT32_MAX)
            good = zip64_end(z, z->size - n + at, &where);
    }
    free(tail);
    if (!good || z->directory_n > (uint64_t)z->size || where > (uint64_t)z->size - z->directory_n ||
        z->members > z->directory_n / 46)
        return false;
    z->directory = malloc(z->directory_n + 1);
    return z->directory && read_at(z->fd, (int64_t)where, z->directory, z->directory_n);
}

/* Positions the source at the bytes of a member, after its local header. */
static bool open_member(Zip *z, const Member *m, Source *s, NpzError *e) {
    unsigned char h[30];
    if (m->flags & 1) return wrong(e, "it is encrypted");
    if (m->method != 0 && m->method != 8) return wrong(e, "compression method %u is unknown", m->method);
    if (m->offset > (uint64_t)z->size || !read_at(z->fd, (int64_t)m->offset, h, 30) || memcmp(h, "PK\3\4", 4))
        return wrong(e, "its header is not where the archive says");
    uint64_t at = m->offset + 30 + get(h + 26, 2) + get(h + 28, 2);
    if (at > (uint64_t)z->size || m->packed > (uint64_t)z->size - at) return wrong(e, "it is cut off");
    z->read += m->packed;
    if (z->read > (uint64_t)z->size) return wrong(e, "it overlaps another one");
    /* deflate expands a byte to at most 1032 */
    if (m->method ? m->size / 1032 > m->packed : m->size != m->packed) return wrong(e, "its size is wrong");
    s->fd = z->fd;
    s->at = (int64_t)at;
    s->packed = (int64_t)m->packed;
    s->left = (int64_t)m->size;
    s->deflated = m->method == 8;
    s->crc = 0;
    memset(&s->z, 0, sizeof s->z);
    return !s->deflated || inflateInit2(&s->z, -MAX_WBITS) == Z_OK || wrong(e, "no memory");
}

static bool read_member(Zip *z, const Member *m, Source *s, NpzArray *a, NpzError *e) {
    if (!open_member(z, m, s, e)) return false;
    bool good = read_array(s, a, e);
    if (s->deflated) inflateEnd(&s->z);
    return good && (s->crc == m->crc || wrong(e, "its checksum is wrong"));
}

static bool read_zip(Zip *z, Source *s, Npz *out, NpzError *e) {
    if (!read_directory(z)) return wrong(e, "it is no .npy or .npz file, or cut off");
    const unsigned char *p = z->directory, *end = p + z->directory_n;
    out->at = calloc(z->members + 1, sizeof *out->at);
    if (!out->at) return wrong(e, "no memory");
    for (uint64_t i = 0; i < z->members; i++) {
        Member m;
        NpzError why;
        if (!next_member(&p, end, &m)) return wrong(e, "its directory is wrong");
        if (m.name_n < 4 || memcmp(m.name + m.name_n - 4, ".npy", 4)) continue;
        NpzArray *a = &out->at[out->n++];
        a->name = strndup(m.name, m.name_n - 4);
        if (!a->name) return wrong(e, "no memory");
        if (!read_member(z, &m, s, a, &why)) return wrong(e, "array '%.60s': %.200s", a->name, why.text);
    }
    return true;
}

static bool read_npy(Zip *z, Source *s, Npz *out, NpzError *e) {
    out->at = calloc(1, sizeof *out->at);
    if (!out->at) return wrong(e, "no memory");
    out->n = 1;
    out->at[0].name = strdup("");
    s->fd = z->fd;
    s->left = z->size;
    return out->at[0].name && read_array(s, &out->at[0], e);
}

static bool read_file(int fd, const char *folder, Npz *out, NpzError *e) {
    struct stat st;
    char magic[6] = "";
    if (fstat(fd, &st)) return wrong(e, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode)) return wrong(e, "it is no regular file");
    Zip z = {.fd = fd, .size = st.st_size};
    Source *s = calloc(1, sizeof *s);
    if (!s) return wrong(e, "no memory");
    s->folder = folder;
    void *map = folder && st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED) out->map = s->map = map, out->map_bytes = st.st_size;
    bool npy = st.st_size >= 6 && read_at(fd, 0, magic, 6) && !memcmp(magic, "\x93NUMPY", 6);
    bool good = npy ? read_npy(&z, s, out, e) : read_zip(&z, s, out, e);
    free(z.directory);
    free(s);
    return good;
}

bool npz_read(const char *path, Npz *out, NpzError *e) { return npz_map(path, NULL, out, e); }

bool npz_map(const char *path, const char *folder, Npz *out, NpzError *e) {
    *out = (Npz){0};
    NpzError why;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return wrong(e, "cannot open '%.100s': %s", path, strerror(errno));
    bool good = read_file(fd, folder, out, &why);
    close(fd);
    if (good) return true;
    npz_free(out);
    return wrong(e, "cannot read '%.100s': %.280s", path, why.text);
}

void npz_free(Npz *z) {
    for (uint32_t i = 0; i < z->n; i++) {
        free(z->at[i].name);
        release(&z->at[i]);
    }
    free(z->at);
    if (z->map) munmap(z->map, (size_t)z->map_bytes);
    *z = (Npz){0};
}

void npz_keep(Npz *z) {
    z->map = NULL;
    for (uint32_t i = 0; i < z->n; i++) z->at[i].place = NPZ_INSIDE;
}

const NpzArray *npz_find(const Npz *z, const char *name) {
    for (uint32_t i = 0; i < z->n; i++)
        if (!strcmp(z->at[i].name, name)) return &z->at[i];
    return NULL;
}
