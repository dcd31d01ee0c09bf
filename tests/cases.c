#include "cases.h"
#include "../runtime/npz.h"
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *case_file(const Case *c, const char *suffix) {
    char *path = NULL;
    size_t stem = strlen(c->path) - strlen(".jaxpr");
    if (asprintf(&path, "%.*s%s", (int)stem, c->path, suffix) < 0) abort();
    return path;
}

/* The first word of S.expect; empty without one. */
static void expectation(const Case *c, char word[16]) {
    FILE *f = fopen(case_file(c, ".expect"), "r");
    if (!f || fscanf(f, "%15s", word) != 1) word[0] = 0;
    if (f) fclose(f);
}

static bool chosen(const Case *c, bool all) {
    char word[16];
    expectation(c, word);
    if (strcmp(word, "run") == 0) return true;
    if (!all) return access(case_file(c, ".out.npz"), R_OK) == 0;
    bool wrong = strstr(c->path, "/errors/") && access(case_file(c, ".out.npz"), R_OK) != 0;
    return (!word[0] && !wrong) || strcmp(word, "ok") == 0;
}

static int by_path(const void *x, const void *y) { return strcmp(((const Case *)x)->path, ((const Case *)y)->path); }

static void add(Cases *cases, Case c) {
    if (cases->n == cases->cap) cases->at = realloc(cases->at, sizeof(Case) * (cases->cap = cases->cap * 2 + 64));
    cases->at[cases->n++] = c;
}

/* The number of a column by its name in the first row. */
static int column(const char *header, const char *name) {
    int k = 0;
    for (size_t n; *header; header += n + (header[n] != 0), k++) {
        n = strcspn(header, "\t\r\n");
        if (n == strlen(name) && strncmp(header, name, n) == 0) return k;
        if (header[n] != '\t') break;
    }
    return -1;
}

/* Cell k of a row, a new string. */
static char *cell(const char *row, int k) {
    for (; k > 0 && row; k--) row = strchr(row, '\t') ? strchr(row, '\t') + 1 : NULL;
    return k < 0 || !row ? strdup("") : strndup(row, strcspn(row, "\t\r\n"));
}

static double tolerance(const char *row, int k) {
    char *text = cell(row, k), *end;
    double x = strtod(text, &end);
    return end == text ? -1 : x;
}

/* The cases of MANIFEST.tsv in `dir` are among those already found, sorted by path. */
static void read_manifest(Cases *cases, const char *dir) {
    char *path = NULL, *row = NULL, *header = NULL;
    size_t cap = 0;
    if (asprintf(&path, "%s/MANIFEST.tsv", dir) < 0) abort();
    FILE *f = fopen(path, "r");
    if (f && getline(&row, &cap, f) > 0) header = strdup(row);
    while (header && getline(&row, &cap, f) > 0) {
        Case key = {0};
        if (asprintf(&key.path, "%s/%s.jaxpr", dir, cell(row, column(header, "stem"))) < 0) abort();
        Case *c = bsearch(&key, cases->at, cases->n, sizeof *cases->at, by_path);
        if (!c) continue;
        c->primitives = cell(row, column(header, "primitives"));
        c->dtypes = cell(row, column(header, "dtypes"));
        c->rtol = tolerance(row, column(header, "rtol"));
        c->atol = tolerance(row, column(header, "atol"));
        c->shape_only = strcmp(cell(row, column(header, "check")), "shape") == 0;
    }
    if (f) fclose(f);
}

static void walk(Cases *cases, const char *dir, bool all, bool manifests) {
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, alphasort);
    if (manifests) read_manifest(cases, dir);
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        const char *name = names[i]->d_name;
        size_t length = strlen(name);
        if (name[0] == '.' || asprintf(&path, "%s/%s", dir, name) < 0) continue;
        Case c = {.path = path, .rtol = -1, .atol = -1};
        if (names[i]->d_type == DT_DIR)
            walk(cases, path, all, manifests);
        else if (!manifests && length > 6 && strcmp(name + length - 6, ".jaxpr") == 0 && chosen(&c, all))
            add(cases, c);
        free(names[i]);
    }
    free(names);
}

void cases_find(Cases *cases, const char *dir, bool all) {
    walk(cases, dir, all, false);
    if (cases->n) qsort(cases->at, cases->n, sizeof *cases->at, by_path);
    walk(cases, dir, all, true);
}

/* Is the word of n bytes among the words of the text, which blanks part? */
static bool has_word(const char *text, const char *word, size_t n) {
    for (text += strspn(text, " \t\r\n"); *text;) {
        size_t m = strcspn(text, " \t\r\n");
        if (m == n && strncmp(text, word, n) == 0) return true;
        text += m;
        text += strspn(text, " \t\r\n");
    }
    return false;
}

/* Are all words of the comma-separated list in the text? */
static bool all_in(const char *list, const char *text) {
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n && !has_word(text, list, n)) return false;
        list += n + (list[n] != 0);
    }
    return true;
}

void cases_keep(Cases *cases, const char *pattern, bool matching) {
    regex_t regex;
    uint32_t n = 0;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB)) exit(2);
    for (uint32_t i = 0; i < cases->n; i++)
        if ((regexec(&regex, cases->at[i].path, 0, NULL, 0) == 0) == matching) cases->at[n++] = cases->at[i];
    cases->n = n;
    regfree(&regex);
}

void cases_list(Cases *cases, const char *prims, const char *dtypes, bool only) {
    char *text = NULL;
    size_t cap = 0;
    FILE *f = fopen(prims, "r");
    if (!f || getdelim(&text, &cap, 0, f) < 0) exit(2);
    fclose(f);
    uint32_t n = 0;
    for (uint32_t i = 0; i < cases->n; i++) {
        Case *c = &cases->at[i];
        c->listed = c->primitives && all_in(c->primitives, text) && (!dtypes || all_in(c->dtypes, dtypes));
        if (c->listed || !only) cases->at[n++] = *c;
    }
    cases->n = n;
    free(text);
}

/* ---- comparison */

/* What the bits of an element stand for; `bf16`: u2 and V2 arrays hold them. */
typedef struct {
    const NpzArray *a;
    bool bf16;
} Elements;

static double element(Elements e, int64_t i) {
    const NpzArray *a = e.a;
    const char *at = (const char *)a->data + i * a->size;
    if (a->kind == 'c') return a->size == 8 ? *(const float *)at : *(const double *)at;
    if (e.bf16) {
        uint32_t bits = (uint32_t)*(const uint16_t *)at << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    return a->size == 2 ? (double)*(const _Float16 *)at : a->size == 4 ? *(const float *)at : *(const double *)at;
}

/* Relative and absolute tolerance of an element type. */
static double type_tolerance(Elements e) {
    unsigned size = e.a->kind == 'c' ? e.a->size / 2 : e.a->size;
    return e.bf16 ? 3e-2 : size == 2 ? 4e-3 : size == 4 ? 2e-5 : 1e-9;
}

/* |x − y| ≤ atol + rtol·|y|; equal infinities and two NaN are close. */
static bool is_close(double x, double y, double rtol, double atol) {
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return x == y || (isfinite(x) && isfinite(y) && fabs(x - y) <= atol + rtol * fabs(y));
}

/* A complex array is one of twice as many reals. */
static NpzArray as_reals(const NpzArray *a) {
    NpzArray r = *a;
    if (a->kind == 'c') r.kind = 'f', r.size = a->size / 2;
    return r;
}

static bool floats_close(const Case *c, Elements g, Elements w, char *why, size_t n) {
    double rtol = c->rtol < 0 ? type_tolerance(w) : c->rtol, atol = c->rtol < 0 ? rtol : c->atol, scale = 1;
    int64_t count = w.a->bytes / w.a->size;
    for (int64_t i = 0; c->rtol < 0 && i < count; i++) {
        double x = fabs(element(w, i));
        if (isfinite(x) && x > scale) scale = x;
    }
    for (int64_t i = 0; i < count; i++) {
        double x = element(g, i), y = element(w, i);
        if (is_close(x, y, rtol, atol * scale)) continue;
        snprintf(why, n, "%s[%lld]: %.17g instead of %.17g", w.a->name, (long long)i, x, y);
        return false;
    }
    return true;
}

/* An integer or bool element; its low 64 bits. */
static long long integer(const NpzArray *a, int64_t i) {
    uint64_t x = 0;
    memcpy(&x, (const char *)a->data + i * a->size, a->size < 8 ? a->size : 8);
    unsigned unused = a->size < 8 ? 64 - 8 * a->size : 0;
    return a->kind == 'i' ? (long long)(x << unused) >> unused : (long long)x;
}

static bool array_close(const Case *c, const NpzArray *got, const NpzArray *want, bool bf16, char *why, size_t n) {
    if (got->rank != want->rank || memcmp(got->dims, want->dims, sizeof *got->dims * got->rank) != 0) {
        snprintf(why, n, "%s: another shape", want->name);
        return false;
    }
    if (got->size != want->size) {
        snprintf(why, n, "%s: %c%d instead of %c%d", want->name, got->kind, got->size, want->kind, want->size);
        return false;
    }
    if (c->shape_only) return true;
    bool bits = bf16 && want->size == 2 && (want->kind == 'u' || want->kind == 'V');
    NpzArray w = as_reals(want), g = as_reals(got);
    g.kind = w.kind;
    g.size = w.size;
    if (bits || w.kind == 'f') return floats_close(c, (Elements){&g, bits}, (Elements){&w, bits}, why, n);
    for (int64_t i = 0; i < w.bytes; i++)
        if (((char *)g.data)[i] != ((char *)w.data)[i]) {
            snprintf(why, n, "%s[%lld]: %lld instead of %lld", w.name, (long long)(i / w.size), integer(&g, i / w.size),
                     integer(&w, i / w.size));
            return false;
        }
    return true;
}

static bool mentions_bf16(const Case *c) {
    char *text = NULL;
    size_t cap = 0;
    FILE *f = fopen(c->path, "r");
    bool found = f && getdelim(&text, &cap, 0, f) > 0 && strstr(text, "bf16[");
    if (f) fclose(f);
    free(text);
    return found;
}

bool compare_files(const Case *c, const char *got_path, const char *want_path, char *why, size_t n) {
    Npz got, want;
    NpzError error;
    if (!npz_read(got_path, &got, &error) || !npz_read(want_path, &want, &error)) {
        snprintf(why, n, "%.200s", error.text);
        return false;
    }
    bool good = got.n == want.n, bf16 = mentions_bf16(c);
    if (!good) snprintf(why, n, "%u outputs instead of %u", got.n, want.n);
    for (uint32_t i = 0; i < want.n && good; i++) {
        const NpzArray *g = npz_find(&got, want.at[i].name);
        if (!g) snprintf(why, n, "no %s", want.at[i].name);
        good = g && array_close(c, g, &want.at[i], bf16, why, n);
    }
    npz_free(&got);
    npz_free(&want);
    return good;
}

/* ---- cases written again */
static void make_folders(char *path) {
    for (char *c = path + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(path, 0777);
            *c = '/';
        }
}

static void link_to(const char *from, const char *to) {
    char *real = realpath(from, NULL);
    if (real && symlink(real, to) != 0 && errno != EEXIST) perror(to);
    free(real);
}

static char *below(const char *folder, const char *name, const char *suffix) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", folder, name, suffix) < 0) abort();
    make_folders(path);
    return path;
}

bool case_write(const Case *c, const char *from, const char *to, const char *text, size_t n) {
    glob_t files; /* arrays, options, rules */
    char *stem = strdup(c->path + strlen(from) + 1);
    if (!stem) abort();
    stem[strlen(stem) - strlen(".jaxpr")] = 0;
    if (glob(case_file(c, ".*"), 0, NULL, &files) != 0) abort();
    for (size_t i = 0; i < files.gl_pathc; i++)
        if (strcmp(files.gl_pathv[i], c->path) != 0)
            link_to(files.gl_pathv[i], below(to, stem, files.gl_pathv[i] + strlen(c->path) - strlen(".jaxpr")));
    globfree(&files);
    link_to(c->path, below(to, stem, ".static"));
    const char *path = below(to, stem, ".jaxpr");
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(text, 1, n, f) == n;
    if (!f || fclose(f) != 0 || !ok) return perror(path), false;
    return true;
}
void cases_link_manifest(const char *from, const char *to) {
    link_to(below(from, "MANIFEST.tsv", ""), below(to, "MANIFEST.tsv", ""));
}
