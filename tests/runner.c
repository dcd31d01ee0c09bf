/* Runs cases: S.jaxpr is compiled, called with S.in.npz and compared with S.out.npz; each in a
   process of its own, forked from this one, which holds the compiler and jaxcc-run. What passes and
   what does not is judged as the case's MANIFEST.tsv says, or by the tolerance of its element
   types.

       runner [option]... DIR...
       --prims FILE      of the cases of these primitives alone, ...
       --dtypes 'A B'    ... and of these element types alone, ...
       --min-pass R      ... (or of all cases) this part must pass; default 0; with --fixed all that passed without
       --only            the others are not run
       --strict          what does not pass must be refused as not supported yet
       --filter REGEX    only cases whose path matches
       --without REGEX   only cases whose path does not
       --extra FLAG      a flag for every compilation; repeatable
       --fixed R         this part of the cases with --vmap again, with -D for each batch: its size in S.in.npz
       --part R[,S]      this part of the cases alone; of R,S what is in the part S but not in R
       --orders          for a GPU: called in a process of its own with blocks and warps in the other order too
                         (JAXCC_GPU_ORDER=1), a program gives the same bytes
       --seed N          draws others; default 0
       --transform FLAG  S.jaxpr under FLAG gives what S.static gives under it, of S.in.npz and drawn numbers for
                         what FLAG adds; a case of which S.static does not compile so is left out
       --roundtrip       instead, every .jaxpr is printed, and what is printed is printed again: the
   same text
       --unlimited       processes may have any amount of address space, as drivers of GPUs reserve all of a GPU's memory
       --jobs N, --fail-list FILE */
#include "cases.h"
#include "drawn.h"
#include "linear.h"
#include "loaded.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int jaxcc_main(int argc, char **argv);     /* compiler/main.c */
int jaxcc_run_main(int argc, char **argv); /* runtime/run.c */

typedef enum { PASS, REFUSED, COMPILE, RUN, MISMATCH, CRASH, TIMEOUT, LEFT_OUT, NOUTCOMES } Outcome;
static const char *const outcome_name[] = {"pass",     "refused", "compile", "run",
                                           "mismatch", "crash",   "timeout", "left out"};

enum { MOST_WORDS = 50, MOST_EXTRA = 16, MOST_LINES = 60 }; /* of S.args; --extra; shown of the log of a crash */
#ifdef __SANITIZE_ADDRESS__
enum { MOST_SECONDS = 300 };
#else
enum { MOST_SECONDS = 60 };
#endif

/* What a case's process tells; in memory shared with it. */
typedef struct {
    Outcome outcome;
    char why[240];
    bool fixed; /* run again with sizes of batches */
} Report;

typedef struct {
    const char *filter, *without, *prims, *dtypes, *fail_list, *transform, *extra[MOST_EXTRA];
    int nextra, jobs, seed;
    double min_pass, fixed, part[2]; /* cases from … to … */
    bool strict, only, roundtrip, unlimited, orders;
    Cases cases;
    char tmp[64];
    Report *reports;
} Run;

static const char *in_tmp(const Run *r, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%d-%s", r->tmp, (int)getpid(), name) < 0) abort();
    return path;
}

/* What this process prints is kept for what is said of it. */
static void to_log(const Run *r) {
    int fd = open(in_tmp(r, "log"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
}
/* Removes the files of a process. */
static void forget(const Run *r, pid_t process) {
    static const char *const names[] = {"case.so",    "log",        "out.npz",    "want.npz",   "in.npz",
                                        "given.npz",  "last.npz",   "fixed.so",   "again.npz",  "again2.npz",
                                        "again3.npz", "again4.npz", "again5.npz", "again6.npz", "again7.npz",
                                        "again8.npz", "again9.npz"};
    for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%d-%s", r->tmp, (int)process, names[k]);
        unlink(path);
    }
}

static bool exists(const char *path) { return access(path, R_OK) == 0; }

/* The first line with "error", or the first line, of what was printed. */
static void first_line(const char *path, char *why, size_t n) {
    char line[2048];
    FILE *f = fopen(path, "r");
    why[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        bool error = strstr(line, "error") != NULL;
        if (error || !why[0]) snprintf(why, n, "%.*s", (int)n - 1, line);
        if (error) break;
    }
    if (f) fclose(f);
}

static bool log_says(const char *path, const char *words) {
    char line[2048];
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f)) found = strstr(line, words) != NULL;
    if (f) fclose(f);
    return found;
}

/* The words of a file, split at blanks; the first line only, as one word, when `line`. */
static int add_words(char **argv, int n, const char *path, bool line) {
    char text[4096];
    FILE *f = fopen(path, "r");
    size_t length = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[length] = 0;
    char *rest = strdup(text);
    for (char *word; n < MOST_WORDS && (word = strtok_r(NULL, line ? "\n" : " \t\r\n", &rest));) {
        argv[n++] = word;
        if (line) break;
    }
    return n;
}

/* NAME=FILE[,FILE] of --rule: the files lie beside the case. */
static char *rule_beside(const Case *c, const char *rule) {
    const char *stem = case_file(c, ""), *slash = strrchr(stem, '/'), *equals = strchr(rule, '='),
               *comma = strchr(rule, ',');
    int folder = slash ? (int)(slash + 1 - stem) : 0, name = (int)(equals + 1 - rule);
    int first = comma ? (int)(comma - equals) - 1 : (int)strlen(equals + 1);
    char *text;
    int n = comma ? asprintf(&text, "%.*s%.*s%.*s,%.*s%s", name, rule, folder, stem, first, equals + 1, folder, stem,
                             comma + 1)
                  : asprintf(&text, "%.*s%.*s%s", name, rule, folder, stem, equals + 1);
    if (n < 0) abort();
    return text;
}

/* The flags of S.args. */
typedef struct {
    char *at[MOST_WORDS];
    int n;
} Words;
static Words words_of(const Case *c) {
    Words w = {.n = 0};
    w.n = add_words(w.at, 0, case_file(c, ".args"), false);
    for (int i = 1; i < w.n; i++)
        if (!strcmp(w.at[i - 1], "--rule")) w.at[i] = rule_beside(c, w.at[i]);
    return w;
}
static bool has_flag(const Words *w, const char *flag) {
    bool found = false;
    for (int i = 0; i < w->n; i++) found |= strncmp(w->at[i], flag, strlen(flag)) == 0;
    return found;
}

#define CASE_NAME "a_case" /* of the library's function */
/* The program becomes the library `so`, with further flags. */
typedef struct {
    const char *program, *so;
    char *const *flags;
    int n;
} Build;
static int compile_case(const Run *r, const Case *c, Build b) {
    char *argv[MOST_WORDS + MOST_EXTRA + MOST_BATCHES + 8] = {"jaxcc", (char *)b.program}, *text, *sig[2] = {NULL};
    Words words = words_of(c);
    int n = 2;
    for (int i = 0; i < words.n; i++) argv[n++] = words.at[i];
    if (exists(case_file(c, ".consts.npz")) && asprintf(&text, "--consts=%s", case_file(c, ".consts.npz")) > 0)
        argv[n++] = text;
    if (add_words(sig, 0, case_file(c, ".sig"), true) && asprintf(&text, "--in-type=%s", sig[0]) > 0) argv[n++] = text;
    for (int i = 0; i < r->nextra; i++) argv[n++] = (char *)r->extra[i];
    for (int i = 0; i < b.n; i++) argv[n++] = b.flags[i];
    argv[n++] = "--name=" CASE_NAME;
    argv[n++] = "--no-header";
    argv[n++] = "-o";
    argv[n++] = (char *)b.so;
    return jaxcc_main(n, argv);
}

static void tell(Report *report, Outcome o, const char *why) {
    report->outcome = o;
    snprintf(report->why, sizeof report->why, "%.*s", (int)sizeof report->why - 1, why);
}

/* A case that is well typed and refused when it runs: S.expect is `run WORD...`. */
static char *must_fail(const Case *c) {
    char *words[2] = {NULL};
    if (!add_words(words, 0, case_file(c, ".expect"), true) || strncmp(words[0], "run", 3) != 0) return NULL;
    return words[0] + 3;
}

static bool fails_well(int status, char *words, const char *log) {
    bool good = status == 1;
    for (char *word; good && (word = strtok_r(NULL, " ", &words));) good = log_says(log, word);
    return good;
}

static bool same_bytes(const char *x, const char *y) {
    FILE *f = fopen(x, "r"), *g = fopen(y, "r");
    int c = 0, d = 0;
    while (f && g && (c = getc(f)) == (d = getc(g)) && c != EOF) {
    }
    bool same = f && g && c == d;
    if (f) fclose(f);
    if (g) fclose(g);
    return same;
}

/* What is printed reads again as the same program. */
static void print_twice(const Run *r, const Case *c, const char *log, Report *report) {
    const char *texts[] = {c->path, in_tmp(r, "case.so"), in_tmp(r, "out.npz")};
    for (int k = 0; k < 2; k++) {
        char *argv[] = {"jaxcc", "--emit=jaxpr", "--no-check", (char *)texts[k], "-o", (char *)texts[k + 1]};
        int status = jaxcc_main(6, argv);
        if (status == 0) continue;
        fflush(NULL);
        first_line(log, report->why, sizeof report->why);
        report->outcome = status == 3 ? CRASH : COMPILE;
        return;
    }
    bool same = same_bytes(texts[1], texts[2]);
    tell(report, same ? PASS : MISMATCH, same ? "" : "it prints as another program");
}

/* jaxcc-run on a program of the library; its status. */
static int call(const char *so, const char *name, const char *in, const char *out, Report *report) {
    tell(report, CRASH, "when it ran");
    optind = 0; /* getopt starts anew */
    char *argv[] = {"jaxcc-run", (char *)so, (char *)in, "--guard", "--entry", (char *)name, "-o", (char *)out, NULL};
    int status = jaxcc_run_main(8, argv);
    fflush(NULL);
    return status;
}

/* The outputs of a program under the transformation; the first one's inputs are those of the other. */
static bool transformed(const Run *r, const Case *c, const char *program, const char *out, Report *report) {
    const char *so = in_tmp(r, "case.so"), *log = in_tmp(r, "log"), *in = in_tmp(r, "in.npz");
    bool first = program != c->path;
    char *flag = (char *)r->transform;
    int status = compile_case(r, c, (Build){program, so, &flag, 1});
    fflush(NULL);
    first_line(log, report->why, sizeof report->why);
    report->outcome = status == 3 ? CRASH : first ? LEFT_OUT : COMPILE;
    if (status) return false;
    if (first && !drawn_inputs(so, CASE_NAME, case_file(c, ".in.npz"), in, report->why, sizeof report->why))
        return false;
    status = call(so, CASE_NAME, in, out, report);
    first_line(log, report->why, sizeof report->why);
    report->outcome = first ? LEFT_OUT : RUN;
    return status == 0;
}
static void agrees(const Run *r, const Case *c, Report *report) {
    const char *want = in_tmp(r, "want.npz"), *got = in_tmp(r, "out.npz");
    char why[240];
    if (!transformed(r, c, case_file(c, ".static"), want, report)) return;
    if (!transformed(r, c, c->path, got, report)) return;
    bool same = compare_files(c, got, want, why, sizeof why);
    tell(report, same ? PASS : MISMATCH, same ? "" : why);
}

/* The programs of --linearize, one after the other. */
static int call_linear(const Run *r, const char *so, const char *in, const char *out, Report *report) {
    static const char forward[] = CASE_NAME "_fwd", linear[] = CASE_NAME "_lin";
    const char *part = in_tmp(r, "in.npz"), *given = in_tmp(r, "given.npz"), *last = in_tmp(r, "last.npz");
    Linear l;
    if (!linear_of(so, forward, linear, in, &l) || !linear_point(&l, in, part)) return 1;
    int status = call(so, forward, part, given, report);
    if (status || !linear_tangents(&l, given, in, part)) return 1;
    status = call(so, linear, part, last, report);
    return status || !linear_results(&l, given, last, out);
}

static bool compiles(const Run *r, const Case *c, Build b, Report *report) {
    const char *log = in_tmp(r, "log");
    char why[240];
    int status = compile_case(r, c, b);
    fflush(NULL);
    if (status == 0) return true;
    first_line(log, why, sizeof why);
    bool refused = log_says(log, status == 2 ? "unknown option" : "is not supported yet");
    tell(report, refused ? REFUSED : status == 3 ? CRASH : COMPILE, why);
    return false;
}

/* The library gives S.out.npz of S.in.npz, or those numbered `suffix`. */
static bool gives(const Run *r, const Case *c, const char *so, const char *suffix, Report *report) {
    const char *log = in_tmp(r, "log"), *out = in_tmp(r, "out.npz");
    char in_name[24], out_name[24], why[240], *words = must_fail(c);
    snprintf(in_name, sizeof in_name, ".in%s.npz", suffix);
    snprintf(out_name, sizeof out_name, ".out%s.npz", suffix);
    Words flags = words_of(c);
    const char *in = case_file(c, in_name);
    int status =
        has_flag(&flags, "--linearize") ? call_linear(r, so, in, out, report) : call(so, CASE_NAME, in, out, report);
    fflush(NULL);
    first_line(log, why, sizeof why);
    bool good = words ? fails_well(status, words, log) : status == 0;
    if (!good)
        tell(report, RUN, why);
    else if (!words && !(good = compare_files(c, out, case_file(c, out_name), why, sizeof why)))
        tell(report, MISMATCH, why);
    return good;
}
/* The outputs of the inputs numbered `suffix` in the other order, of the case that this process runs. */
static const char *other_outputs(const Run *r, pid_t process, const char *suffix) {
    char *path;
    if (asprintf(&path, "%s/%d-again%s.npz", r->tmp, (int)process, suffix) < 0) abort();
    return path;
}
/* All inputs, whose outputs are kept for the process that began this one, or compared with those that it kept. */
static bool gives_each(const Run *r, const Case *c, const char *so, bool keeps, Report *report) {
    for (char k[] = "1"; k[0] <= '9'; k[0]++) {
        const char *suffix = k[0] == '1' ? "" : k, *out = in_tmp(r, "out.npz");
        char name[16];
        snprintf(name, sizeof name, ".in%s.npz", suffix);
        if (suffix[0] && !exists(case_file(c, name))) break;
        if (!gives(r, c, so, suffix, report)) return false;
        if (must_fail(c)) break;
        if (keeps && rename(out, other_outputs(r, getppid(), suffix)) != 0) return false;
        if (!keeps && r->orders && !same_bytes(out, other_outputs(r, getpid(), suffix))) {
            tell(report, MISMATCH, "the order of blocks and warps shows in its results");
            return false;
        }
    }
    return true;
}
/* In the other order, in a process of its own: one has one driver with one order. */
static bool gives_in_other(const Run *r, const Case *c, const char *so, Report *report) {
    alarm(0); /* the child has its own */
    pid_t child = fork();
    if (child == 0) {
        alarm(MOST_SECONDS);
        to_log(r);
        setenv("JAXCC_GPU_ORDER", "1", 1);
        _exit(!gives_each(r, c, so, true, report));
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child) status = 1;
    alarm(MOST_SECONDS);
    if (status) { /* what it printed is what is shown */
        char log[128], why[240];
        snprintf(log, sizeof log, "%s/%d-log", r->tmp, (int)child);
        rename(log, in_tmp(r, "log"));
        snprintf(why, sizeof why, "in the other order: %.200s", report->why);
        tell(report, WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? TIMEOUT : report->outcome, why);
    }
    forget(r, child);
    return status == 0;
}
static bool gives_all(const Run *r, const Case *c, const char *so, Report *report) {
    return (!r->orders || gives_in_other(r, c, so, report)) && gives_each(r, c, so, false, report);
}

/* Is the case in the part [from, to) that is drawn? */
static bool drawn_case(const Run *r, const Case *c, double from, double to) {
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)r->seed;
    for (const char *at = strrchr(c->path, '/'); *at; at++) h = (h ^ (unsigned char)*at) * 0x100000001b3u;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    double at = (double)(h >> 11) * 0x1p-53;
    return from <= at && at < to;
}
static void draw_part(Run *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->cases.n; i++)
        if (drawn_case(r, &r->cases.at[i], r->part[0], r->part[1])) r->cases.at[n++] = r->cases.at[i];
    r->cases.n = n;
}
/* With sizes of batches it gives the same. */
static bool gives_fixed(const Run *r, const Case *c, const char *so, Report *report) {
    Words flags = words_of(c);
    if (!has_flag(&flags, "--vmap=") || must_fail(c) || !drawn_case(r, c, 0, r->fixed)) return true;
    const char *name = has_flag(&flags, "--linearize") ? CASE_NAME "_fwd" : CASE_NAME;
    BatchSizes sizes = batch_sizes(so, name, case_file(c, ".in.npz"), flags.at, flags.n);
    if (!sizes.n) return true;
    Build b = {c->path, in_tmp(r, "fixed.so"), sizes.define, sizes.n};
    report->fixed = true;
    alarm(MOST_SECONDS);
    if (compiles(r, c, b, report) && gives(r, c, b.so, "", report)) return true;
    char why[240];
    snprintf(why, sizeof why, "%s: %.200s", sizes.define[0], report->why);
    tell(report, report->outcome, why);
    return false;
}

/* In the case's own process. */
static void one(const Run *r, const Case *c, Report *report) {
    const char *so = in_tmp(r, "case.so");
    to_log(r);
    if (r->roundtrip)
        print_twice(r, c, in_tmp(r, "log"), report);
    else if (r->transform)
        agrees(r, c, report);
    else if (compiles(r, c, (Build){c->path, so, NULL, 0}, report) && gives_all(r, c, so, report) &&
             gives_fixed(r, c, so, report))
        tell(report, PASS, "");
}

static pid_t start(Run *r, uint32_t i) {
    r->reports[i].outcome = CRASH;
    pid_t child = fork();
    if (child) return child;
    struct rlimit none = {0, 0}, some = {(rlim_t)12 << 30, (rlim_t)12 << 30};
    setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__
    if (!r->unlimited) setrlimit(RLIMIT_AS, &some);
#endif
    (void)some;
    alarm(MOST_SECONDS);
    one(r, &r->cases.at[i], &r->reports[i]);
    _exit(0);
}

/* What a crash left in its log: a sanitizer's report is more than a line. */
static void show(const char *path, const char *log) {
    char line[2048];
    FILE *f = fopen(log, "r");
    printf("CRASH %s\n", path);
    for (int n = 0; f && n < MOST_LINES && fgets(line, sizeof line, f); n++) printf("    %s", line);
    if (f) fclose(f);
    fflush(stdout); /* what is kept here would be written by every child too */
}

static void finish(Run *r, uint32_t i, pid_t child, int status) {
    Report *report = &r->reports[i];
    if (WIFSIGNALED(status)) {
        bool late = WTERMSIG(status) == SIGALRM;
        char why[300];
        snprintf(why, sizeof why, "%s %s", late ? "too late" : strsignal(WTERMSIG(status)), report->why);
        tell(report, late ? TIMEOUT : CRASH, why);
    } else if (WEXITSTATUS(status) != 0 && report->outcome == CRASH && !report->why[0])
        snprintf(report->why, sizeof report->why, "it ended with status %d", WEXITSTATUS(status));
    if (report->outcome == CRASH) {
        char log[128], why[240];
        snprintf(log, sizeof log, "%s/%d-log", r->tmp, (int)child);
        first_line(log, why, sizeof why);
        if (why[0]) tell(report, CRASH, why);
        show(r->cases.at[i].path, log);
    }
    forget(r, child);
}

static void run_all(Run *r) {
    pid_t *child = calloc((size_t)r->jobs, sizeof *child);
    uint32_t *which = calloc((size_t)r->jobs, sizeof *which), next = 0, running = 0;
    while (next < r->cases.n || running) {
        for (int j = 0; j < r->jobs && next < r->cases.n; j++)
            if (!child[j]) {
                which[j] = next;
                child[j] = start(r, next++);
                running++;
            }
        int status;
        pid_t done = wait(&status);
        for (int j = 0; j < r->jobs; j++)
            if (child[j] == done) {
                finish(r, which[j], done, status);
                child[j] = 0;
                running--;
            }
    }
    free(child);
    free(which);
}

static void print_counts(const char *what, const uint32_t *count) {
    uint32_t n = 0;
    for (int o = PASS; o < LEFT_OUT; o++) n += count[o];
    printf("%s: %u of %u pass (%.1f %%)", what, count[PASS], n, n ? 100.0 * count[PASS] / n : 100.0);
    for (int o = REFUSED; o < NOUTCOMES; o++)
        if (count[o]) printf(", %s %u", outcome_name[o], count[o]);
    puts("");
}

static int summary(const Run *r, double seconds) {
    uint32_t count[2][NOUTCOMES] = {0}, shown = 0, n = r->cases.n, judged = 0, bad = 0, fixed = 0, unlike = 0;
    FILE *list = r->fail_list ? fopen(r->fail_list, "w") : NULL;
    for (uint32_t i = 0; i < n; i++) {
        Outcome o = r->reports[i].outcome;
        const Case *c = &r->cases.at[i];
        count[0][o]++;
        fixed += r->reports[i].fixed;
        unlike += r->reports[i].fixed && o != PASS && o != TIMEOUT;
        if (o != LEFT_OUT && (c->listed || !r->prims)) count[1][o]++, judged++;
        bad += o > REFUSED && o != LEFT_OUT;
        if (list && o != PASS) fprintf(list, "%s\t%s\t%s\n", outcome_name[o], c->path, r->reports[i].why);
        if (o > REFUSED && o != LEFT_OUT && shown++ < 60)
            printf("FAIL %s %s: %s\n", outcome_name[o], c->path, r->reports[i].why);
    }
    if (list) fclose(list);
    print_counts("all cases", count[0]);
    if (r->prims) print_counts("cases of the listed primitives and types alone", count[1]);
    if (r->fixed > 0) printf("with sizes of batches too: %u\n", fixed);
    bool enough = count[1][PASS] >= r->min_pass * judged;
    if (!enough) puts("FAIL cases: too few pass");
    uint32_t failed = (r->strict ? bad : unlike) + !enough;
    printf("%.1f s\n%s: %u passed, %u failed\n", seconds, r->roundtrip ? "roundtrip" : "cases", n - bad, failed);
    return failed ? 1 : 0;
}

static bool options(Run *r, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        bool *flag = strcmp(a, "--strict") == 0      ? &r->strict
                     : strcmp(a, "--only") == 0      ? &r->only
                     : strcmp(a, "--unlimited") == 0 ? &r->unlimited
                     : strcmp(a, "--orders") == 0    ? &r->orders
                     : strcmp(a, "--roundtrip") == 0 ? &r->roundtrip
                                                     : NULL;
        if (flag) {
            *flag = true;
            continue;
        }
        if (a[0] != '-') {
            cases_find(&r->cases, a, r->roundtrip);
            continue;
        }
        if (!v) return false;
        i++;
        if (strcmp(a, "--filter") == 0)
            r->filter = v;
        else if (strcmp(a, "--without") == 0)
            r->without = v;
        else if (strcmp(a, "--prims") == 0)
            r->prims = v;
        else if (strcmp(a, "--dtypes") == 0)
            r->dtypes = v;
        else if (strcmp(a, "--jobs") == 0)
            r->jobs = atoi(v);
        else if (strcmp(a, "--min-pass") == 0)
            r->min_pass = atof(v);
        else if (strcmp(a, "--fixed") == 0)
            r->fixed = atof(v);
        else if (strcmp(a, "--part") == 0)
            r->part[0] = strchr(v, ',') ? atof(v) : 0, r->part[1] = atof(strchr(v, ',') ? strchr(v, ',') + 1 : v);
        else if (strcmp(a, "--seed") == 0)
            r->seed = atoi(v);
        else if (strcmp(a, "--fail-list") == 0)
            r->fail_list = v;
        else if (strcmp(a, "--transform") == 0)
            r->transform = v;
        else if (strcmp(a, "--extra") == 0 && r->nextra < MOST_EXTRA)
            r->extra[r->nextra++] = v;
        else
            return false;
    }
    return r->jobs > 0;
}

int main(int argc, char **argv) {
    Run r = {.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), .tmp = "/tmp/jaxcc-cases-XXXXXX"};
    if (!options(&r, argc, argv)) return fputs("usage: see tests/runner.c\n", stderr), 2;
    if (r.filter) cases_keep(&r.cases, r.filter, true);
    if (r.without) cases_keep(&r.cases, r.without, false);
    if (r.part[1] > 0) draw_part(&r);
    if (r.prims) cases_list(&r.cases, r.prims, r.dtypes, r.only);
    setenv("JAXCC_NUM_THREADS", "2", 0);
    setenv("NO_COLOR", "1", 1);
    if (!mkdtemp(r.tmp)) return perror(r.tmp), 1;
    r.reports = mmap(NULL, sizeof(Report) * (r.cases.n + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    run_all(&r);
    clock_gettime(CLOCK_MONOTONIC, &to);
    rmdir(r.tmp);
    int status = summary(&r, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9);
    fflush(NULL);
    _exit(status); /* what it holds goes with it; leaks of the compiler show where it runs as a
                      program */
}
