#include "runtime/npz.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char path[64];
static NpzError why;
static Npz z;
static void open_file(void) {
    strcpy(path, "/tmp/jaxcc-npz-XXXXXX");
    close(mkstemp(path));
}
static void close_file(void) {
    npz_free(&z);
    unlink(path);
}
TestSuite(npz, .init = open_file, .fini = close_file);

static void write_bytes(const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* A .npy of version 1 with this header, then `n` bytes; returns its length. */
static size_t npy(char *to, const char *header, const void *data, size_t n) {
    size_t h = strlen(header);
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = (char)(h & 255);
    to[9] = (char)(h >> 8);
    memcpy(to + 10, header, h);
    memcpy(to + 10 + h, data, n);
    return 10 + h + n;
}

static bool read_npy(const char *header, const void *data, size_t n) {
    char bytes[4096];
    npz_free(&z);
    write_bytes(bytes, npy(bytes, header, data, n));
    return npz_read(path, &z, &why);
}

/* A .npz of one deflated member a.npy, as numpy.savez_compressed writes it; returns its length. */
static size_t deflated(unsigned char *to, const char *member, size_t n) {
    unsigned char packed[4096], *p = to;
    z_stream s = {
        .next_in = (unsigned char *)member, .avail_in = (uInt)n, .next_out = packed, .avail_out = sizeof packed};
    deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&s, Z_FINISH);
    uint32_t k = (uint32_t)s.total_out, size = (uint32_t)n, crc = (uint32_t)crc32(0, (unsigned char *)member, size);
    deflateEnd(&s);
    uint32_t sizes[] = {crc, k, size};
    memcpy(p, "PK\3\4\24\0\0\0\10\0\0\0\0\0", 14);
    memcpy(p + 14, sizes, 12);
    memcpy(p + 26, "\5\0\0\0a.npy", 9);
    memcpy(p + 35, packed, k);
    p += 35 + k;
    memcpy(p, "PK\1\2\24\0\24\0\0\0\10\0\0\0\0\0", 16);
    memcpy(p + 16, sizes, 12);
    memcpy(p + 28, "\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a.npy", 23);
    uint32_t end[] = {51, 35 + k};
    memcpy(p + 51, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    memcpy(p + 63, end, 8);
    memcpy(p + 71, "\0\0", 2);
    return (size_t)(p + 73 - to);
}

Test(npz, written_is_read_again) {
    float x[6] = {1, 2, 3, 4, 5, 6};
    uint16_t h[2] = {0x3c00, 0xc000};
    NpzArray in[] = {{"out0", 'f', 4, 2, {2, 3}, 24, x, NPZ_MEMORY},
                     {"out1", 'f', 2, 1, {2}, 4, h, NPZ_MEMORY},
                     {"out2", 'f', 4, 2, {0, 5}, 0, x, NPZ_MEMORY},
                     {"out3", 'f', 4, 0, {0}, 4, x + 5, NPZ_MEMORY}};
    cr_assert(npz_write(path, false, in, 4, &why));
    cr_assert(npz_read(path, &z, &why), "%s", why.text);
    cr_assert_eq(z.n, 4u);
    for (uint32_t i = 0; i < 4; i++) {
        const NpzArray *a = npz_find(&z, in[i].name);
        cr_assert(a && a->kind == in[i].kind && a->size == in[i].size && a->rank == in[i].rank);
        cr_assert_eq(a->bytes, in[i].bytes);
        cr_assert(!memcmp(a->dims, in[i].dims, a->rank * sizeof *a->dims));
        cr_assert(!memcmp(a->data, in[i].data, (size_t)a->bytes));
    }
    npz_free(&z);
    cr_assert(npz_write(path, true, in, 1, &why) && npz_read(path, &z, &why));
    cr_assert(z.n == 1 && !*z.at[0].name && z.at[0].bytes == 24);
}

Test(npz, empty_archives) {
    cr_assert(npz_write(path, false, NULL, 0, &why) && npz_read(path, &z, &why));
    cr_assert_eq(z.n, 0u);
    npz_free(&z);
    write_bytes("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    cr_assert(npz_read(path, &z, &why));
    cr_assert_eq(z.n, 0u);
}

Test(npz, layouts_and_byte_orders) {
    uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}; /* columns of [[1,3,5],[2,4,6]] */
    cr_assert(read_npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", big, 12));
    cr_assert(!memcmp(z.at[0].data, (int16_t[]){1, 3, 5, 2, 4, 6}, 12));
    cr_assert(read_npy("{'shape': (2L,), \"descr\": \"|V2\", 'fortran_order': False}", big, 4));
    cr_assert(z.at[0].kind == 'V' && npz_holds(z.at, npz_type("bf16")) && !npz_holds(z.at, npz_type("i16")));
    uint8_t complex[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0};
    cr_assert(read_npy("{'descr': '>c8', 'fortran_order': False, 'shape': (), }", complex, 8));
    cr_assert(z.at[0].rank == 0 && !memcmp(z.at[0].data, (float[]){1, 2}, 8));
}

/* What is large lies in the file, or in a nameless one. */
Test(npz, mapped_arrays) {
    enum { N = 400000 };
    static const char header[] = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 400000), }\n";
    static uint8_t columns[4 * N];
    static char member[sizeof columns + 128];
    unsigned char archive[5000];
    for (int i = 0; i < N; i++) columns[4 * i + 1] = 1, columns[4 * i + 3] = 2;
    write_bytes(archive, deflated(archive, member, npy(member, header, columns, sizeof columns)));
    for (int folder = 0; folder < 2; folder++) {
        cr_assert(npz_map(path, folder ? "/tmp" : "/no/such/folder", &z, &why), "%s", why.text);
        cr_assert_eq(z.at[0].place, folder ? NPZ_MAPPED : NPZ_MEMORY);
        const int16_t *x = z.at[0].data;
        for (int i = 0; i < 2 * N; i++) cr_assert_eq(x[i], i < N ? 1 : 2);
        if (folder) npz_keep(&z);
        npz_free(&z);
        cr_assert(!folder || x[N] == 2);
    }
    NpzArray in = {"const0", 'u', 1, 1, {sizeof columns}, sizeof columns, columns, NPZ_MEMORY};
    cr_assert(npz_write(path, false, &in, 1, &why) && npz_map(path, "/tmp", &z, &why));
    cr_assert(z.at[0].place == NPZ_INSIDE && !memcmp(z.at[0].data, columns, sizeof columns));
}

Test(npz, wrong_headers_are_refused) {
    static const char *const header[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
        "{'descr': '<f4', 'shape': (2,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
    };
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        cr_assert(!read_npy(header[i], "12345678", 8) && *why.text, "%s", header[i]);
    char rank[1000] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < 65; i++) strcat(rank, "1,");
    cr_assert(!read_npy(strcat(rank, ")}"), "1234", 4));
}

/* Every single wrong byte and every cut of a deflated archive is refused, or read as an array of
 * what it says. */
Test(npz, damaged_archives_are_refused) {
    char member[4096], data[256] = {1, 2, 3};
    unsigned char good[4096], bad[4096];
    size_t m = npy(member, "{'descr': '<i4', 'fortran_order': False, 'shape': (64,), }\n", data, 256);
    size_t n = deflated(good, member, m);
    write_bytes(good, n);
    cr_assert(npz_read(path, &z, &why), "%s", why.text);
    cr_assert(z.n == 1 && z.at[0].bytes == 256 && !memcmp(z.at[0].data, data, 256));
    for (size_t i = 0; i < n; i++)
        for (int flip = 1; flip < 256; flip <<= 1) {
            npz_free(&z);
            memcpy(bad, good, n);
            bad[i] ^= (unsigned char)flip;
            write_bytes(bad, n);
            if (npz_read(path, &z, &why) && z.n) cr_assert(!memcmp(z.at[0].data, data, 256));
        }
    for (size_t i = 0; i < n; i++) {
        npz_free(&z);
        write_bytes(good, i);
        cr_assert(!npz_read(path, &z, &why));
    }
}

Test(npz, missing_files_and_folders) {
    cr_assert(!npz_read("/nowhere/x.npz", &z, &why) && strstr(why.text, "/nowhere/x.npz"));
    cr_assert(!npz_read("/tmp", &z, &why));
    cr_assert(!npz_write("/nowhere/x.npz", false, NULL, 0, &why) && strstr(why.text, "/nowhere/x.npz"));
}
