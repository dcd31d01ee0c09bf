/* Object files → library: runs the system's linker, which does this in 6 ms. */
#include "link.h"
#include "../file.h"
#include "../options.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- files */

static bool failed(Ctx *cx, const char *what, const char *path) {
    return diag_plain(cx->diags, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* PATH.tmpPID-N, created empty with the usual mode; NULL with errno. */
static char *create_beside(Ctx *cx, const char *beside) {
    for (unsigned n = 0; n < 1000; n++) {
        char *path = (char *)str_format(cx->arena, "%s.tmp%ld-%u", beside, (long)getpid(), n).at;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
            return path;
        }
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}

/* Where a new `path` is prepared. A symbolic link is followed; what is no regular file (/dev/null)
 * is written itself. */
typedef struct {
    char *path, *temporary; /* equal when it is written itself */
} Target;

static bool target_open(Ctx *cx, const char *path, Target *t) {
    struct stat st;
    char *real = realpath(path, NULL);
    t->path = str_c(cx->arena, str(real ? real : path));
    free(real);
    t->temporary = t->path;
    if (!stat(t->path, &st) && !S_ISREG(st.st_mode)) {
        if (S_ISDIR(st.st_mode)) errno = EISDIR;
        return S_ISDIR(st.st_mode) ? failed(cx, "write", path) : true;
    }
    t->temporary = create_beside(cx, t->path);
    return t->temporary || failed(cx, "write", path);
}

static bool target_close(Ctx *cx, const Target *t, bool good) {
    if (t->temporary == t->path) return good;
    if (good && !rename(t->temporary, t->path)) return true;
    if (good) failed(cx, "write", t->path);
    unlink(t->temporary);
    return false;
}

/* ---- tools */

/* The first of `names` in PATH; NULL. */
static char *find_tool(Ctx *cx, const char *const *names) {
    const char *path = getenv("PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    for (; *names; names++)
        for (const char *at = path; *at;) {
            size_t n = strcspn(at, ":");
            char *full =
                (char *)str_format(cx->arena, "%.*s%s%s", (int)n, at, n ? "/" : "", *names).at;
            if (!access(full, X_OK)) return full;
            at += n + (at[n] == ':');
        }
    return NULL;
}

typedef struct {
    char **at;
    uint32_t n, cap;
} Args;

static void arg(Ctx *cx, Args *a, const char *text) { push(cx->arena, a, (char *)text); }

static void args(Ctx *cx, Args *a, const char *const *list) {
    for (; *list; list++)
        arg(cx, a, *list);
}

/* What the tool prints, at most 2,000 bytes; the rest is read and forgotten. */
static Str read_output(Ctx *cx, int fd) {
    Text t = {.arena = cx->arena};
    char buffer[512];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0 && t.n < 2000) text_put(&t, (Str){buffer, (uint32_t)n});
    while (t.n && t.at[t.n - 1] == '\n')
        t.n--;
    return (Str){t.at, t.n};
}

static bool spawn(Ctx *cx, Args *a) {
    if (cx->options->verbose) {
        for (uint32_t i = 0; i < a->n; i++)
            fprintf(stderr, " %s", a->at[i]);
        fprintf(stderr, "\n");
    }
    arg(cx, a, NULL);
    int out[2];
    if (pipe2(out, O_CLOEXEC)) return failed(cx, "run", a->at[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    pid_t child;
    errno = posix_spawn(&child, a->at[0], &actions, NULL, a->at, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    Str said = errno ? (Str){0} : read_output(cx, out[0]);
    int saved = errno, status;
    close(out[0]);
    errno = saved;
    if (errno) return failed(cx, "run", a->at[0]);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return failed(cx, "wait for", a->at[0]);
    if (status == 0) return true;
    if (WIFSIGNALED(status))
        return diag_plain(cx->diags, "%s was killed by signal %d", a->at[0], WTERMSIG(status));
    return diag_plain(cx->diags, "%s failed with status %d: %.*s", a->at[0], WEXITSTATUS(status),
                      SF(said));
}

/* ---- the runtime archive: installed, or beside the compiler in the build folder */

static const char *runtime_archive(Ctx *cx) {
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) n = 0;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    static const char *const places[] = {"../lib/jaxcc", ".", ".."};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        const char *path = str_format(cx->arena, "%s/%s/libjaxcc_rt.a", self, places[i]).at;
        if (!access(path, R_OK)) return path;
    }
    diag_plain(cx->diags, "the runtime 'libjaxcc_rt.a' is neither in '%s' nor in '%s/../lib/jaxcc'",
               self, self);
    return NULL;
}

/* ---- linking */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ld's options; through cc each goes behind -Wl, by -Xlinker. lld knows no folders of its own. */
static void linker_options(Ctx *cx, Args *a, const char *tool, const char *soname) {
    const char *const list[] = {"-shared",
                                "-z",
                                "defs",
                                "-z",
                                "relro",
                                "-z",
                                "now",
                                "-z",
                                "noexecstack",
                                "-z",
                                "noseparate-code",
                                "--gc-sections",
                                "--exclude-libs",
                                "ALL",
                                "--hash-style=gnu",
                                "--as-needed",
                                "-soname",
                                soname,
                                NULL};
    const char *const lld[] = {"-L/usr/lib/x86_64-linux-gnu",
                               "-L/lib/x86_64-linux-gnu",
                               "-L/usr/lib64",
                               "-L/lib64",
                               "-L/usr/lib",
                               "-L/lib",
                               NULL};
    bool cc = !strcmp(base_name(tool), "cc");
    if (cc) args(cx, a, (const char *const[]){"-shared", "-nostartfiles", NULL});
    for (const char *const *o = list + cc; *o; o++) {
        if (cc) arg(cx, a, "-Xlinker");
        arg(cx, a, *o);
    }
    if (!strcmp(base_name(tool), "ld.lld")) args(cx, a, lld);
}

bool link_so(Ctx *cx, const char *const *objects, uint32_t n, const char *out) {
    const char *runtime = runtime_archive(cx);
    if (!runtime) return false;
    const char *tool = find_tool(cx, (const char *const[]){"ld", "ld.lld", "cc", NULL});
    if (!tool)
        return diag_plain(cx->diags, "no linker: neither 'ld' nor 'ld.lld' nor 'cc' is in PATH");
    Target t;
    if (!target_open(cx, out, &t)) return false;
    Args a = {0};
    arg(cx, &a, tool);
    linker_options(cx, &a, tool, base_name(out));
    args(cx, &a, (const char *const[]){"-o", t.temporary, NULL});
    for (uint32_t i = 0; i < n; i++)
        arg(cx, &a, objects[i]);
    args(cx, &a, (const char *const[]){runtime, "-lm", "-lc", NULL});
    return target_close(cx, &t, spawn(cx, &a));
}

/* ---- archives: "!<arch>\n", then members, each a header of 60 bytes and its bytes, padded to even
 */

enum { AR_MAGIC = 8, AR_HEADER = 60 };

static void put_member(Text *t, const char *name, Str bytes) {
    text_add(t, "%-16.16s%-12d%-6d%-6d%-8s%-10u`\n", name, 0, 0, 0, "644", bytes.n);
    text_put(t, bytes);
    if (bytes.n & 1) text_put(t, S("\n"));
}

/* The members of an archive, without its index; their names have at most 15 bytes. */
static bool put_members(Text *t, Str archive) {
    for (uint32_t at = AR_MAGIC; at + AR_HEADER <= archive.n;) {
        const char *header = archive.at + at;
        uint32_t n = (uint32_t)strtoul(str_c(t->arena, (Str){header + 48, 10}), NULL, 10);
        if (n > archive.n - at - AR_HEADER) return false;
        uint32_t whole = AR_HEADER + n + (n & 1);
        if (whole > archive.n - at) whole = archive.n - at;
        if (header[0] != '/') text_put(t, (Str){header, whole});
        at += whole;
    }
    return true;
}

static bool archive_text(Ctx *cx, const char *const *objects, uint32_t n, Text *t) {
    const char *path = runtime_archive(cx);
    Str bytes;
    text_put(t, S("!<arch>\n"));
    for (uint32_t i = 0; i < n; i++) {
        if (!file_read(cx->arena, cx->diags, objects[i], ALL_OF_IT, &bytes)) return false;
        Str name = str_format(cx->arena, "%.8s%u.o/", cx->options->name, i);
        put_member(t, name.at, bytes);
    }
    if (!path || !file_read(cx->arena, cx->diags, path, ALL_OF_IT, &bytes)) return false;
    return put_members(t, bytes) || diag_plain(cx->diags, "'%s' is no archive", path);
}

/* What `ar s` adds is the index of symbols. */
bool link_archive(Ctx *cx, const char *const *objects, uint32_t n, const char *out) {
    Text text = {.arena = cx->arena};
    if (!archive_text(cx, objects, n, &text)) return false;
    const char *tool = find_tool(cx, (const char *const[]){"ar", "llvm-ar", NULL});
    if (!tool) return diag_plain(cx->diags, "no archiver: neither 'ar' nor 'llvm-ar' is in PATH");
    Target t;
    if (!target_open(cx, out, &t)) return false;
    Args a = {0};
    args(cx, &a, (const char *const[]){tool, "s", t.temporary, NULL});
    return target_close(cx, &t,
                        file_write(cx->arena, cx->diags, t.temporary, (Str){text.at, text.n}) &&
                            spawn(cx, &a));
}
