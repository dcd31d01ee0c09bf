/* Object files → library: runs the system's linker, which does this in 4 ms. */
#include "link.h"
#include "../../file.h"
#include "../../options.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool failed(Ctx *cx, const char *what, const char *path) {
    return diag_plain(cx->diags, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* ---- tools */

/* The first of `names` that is in PATH; NULL if none is. */
static char *find_tool(Ctx *cx, const char *const *names) {
    const char *path = getenv("PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    for (; *names; names++)
        for (const char *at = path; *at;) {
            const char *end = strchrnul(at, ':');
            char *full = (char *)str_format(cx->arena, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "", *names).at;
            if (!access(full, X_OK)) return full;
            at = *end ? end + 1 : end;
        }
    return NULL;
}

typedef struct {
    char **at;
    uint32_t n, cap;
} Args;

static void arg(Ctx *cx, Args *a, const char *text) { push(cx->arena, a, (char *)text); }

static void args(Ctx *cx, Args *a, const char *const *list) {
    for (; *list; list++) arg(cx, a, *list);
}

/* The beginning of the output of the tool; the rest is read and discarded. */
static Str read_output(Ctx *cx, int fd) {
    Text t = {.arena = cx->arena};
    enum { PART = 512, MOST = 2000 };
    char buffer[PART];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0 && t.n < MOST) text_put(&t, (Str){buffer, (uint32_t)n});
    while (t.n && t.at[t.n - 1] == '\n') t.n--;
    return (Str){t.at, t.n};
}

/* A tool to be started: its arguments, and the pipe for its output. */
typedef struct {
    char **args;
    int out[2];
} Tool;

/* posix_spawn, with the signal mask that a shell would give it, and in a process group of its own. */
static int start(void *user, pid_t *child) {
    const Tool *t = user;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, t->out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, t->out[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    int error = posix_spawn(child, t->args[0], &actions, &attributes, t->args, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool spawn(Ctx *cx, Args *a) {
    if (cx->options->verbose) {
        for (uint32_t i = 0; i < a->n; i++) fprintf(stderr, " %s", a->at[i]);
        fprintf(stderr, "\n");
    }
    arg(cx, a, NULL);
    Tool t = {.args = a->at};
    pid_t child;
    if (pipe2(t.out, O_CLOEXEC)) return failed(cx, "run", a->at[0]);
    int error = output_run(start, &t, &child);
    close(t.out[1]);
    Str said = error ? (Str){0} : read_output(cx, t.out[0]);
    close(t.out[0]);
    errno = error;
    if (error) return failed(cx, "run", a->at[0]);
    int status = output_wait(child);
    if (status == 0) return true;
    if (status < 0) return failed(cx, "wait for", a->at[0]);
    if (WIFSIGNALED(status))
        return diag_plain(cx->diags, "%s was killed by signal %d (%s)", a->at[0], WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    return diag_plain(cx->diags, "%s failed with status %d: %.*s", a->at[0], WEXITSTATUS(status), SF(said));
}

/* ---- files of jaxcc: installed, or beside the compiler in the build folder */

static const char archive_name[] = "libjaxcc_rt.a";

/* NULL: there is none. */
static const char *own_file(Ctx *cx, const char *name) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) n = 0;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    static const char *const places[] = {"../lib/jaxcc", ".", ".."};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        const char *path = str_format(cx->arena, "%s/%s/%s", self, places[i], name).at;
        if (!access(path, R_OK)) return path;
    }
    return NULL;
}
static const char *runtime_archive(Ctx *cx) {
    const char *path = own_file(cx, archive_name);
    if (!path)
        diag_plain(cx->diags, "the runtime '%s' is neither beside jaxcc nor in '../lib/jaxcc' from there",
                   archive_name);
    return path;
}
/* What stands in for a library of the system while ld links (runtime/stub.sh): reading libc and libm takes ld 8 ms. */
static const char *system_library(Ctx *cx, const char *stub, const char *option) {
    const char *path = own_file(cx, stub);
    return path ? path : option;
}

/* ---- linking */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *find_linker(Ctx *cx) { return find_tool(cx, (const char *const[]){"ld", "ld.lld", "cc", NULL}); }

static bool is_lld(const char *tool) { return !strcmp(base_name(tool), "ld.lld"); }

/* ld's options; each goes through cc by -Xlinker. lld has no default folders. */
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
    if (is_lld(tool)) args(cx, a, lld);
}

bool link_by_lld(Ctx *cx) {
    const char *tool = find_linker(cx);
    return tool && is_lld(tool);
}

/* A script that makes lld put large constants (constants.c) at the end, as GNU ld does by default. */
static const char *lld_script(Ctx *cx) {
    Output script = {"a linker script", output_scratch(cx->arena, cx->diags, NULL)};
    Str text = S("SECTIONS { .lrodata ALIGN(0x1000) : { *(.lrodata.constants) } } INSERT AFTER .bss;\n");
    return script.to && output_write(cx->diags, &script, text) ? script.to : NULL;
}

bool link_so(Ctx *cx, const Objects *objects, const Output *out) {
    const char *runtime = runtime_archive(cx);
    if (!runtime) return false;
    const char *tool = find_linker(cx);
    if (!tool) return diag_plain(cx->diags, "no linker: neither 'ld' nor 'ld.lld' nor 'cc' is in PATH");
    Args a = {0};
    arg(cx, &a, tool);
    linker_options(cx, &a, tool, base_name(out->path));
    args(cx, &a, (const char *const[]){"-o", out->to, NULL});
    for (uint32_t i = 0; i < objects->n; i++) arg(cx, &a, objects->at[i]);
    arg(cx, &a, runtime);
    arg(cx, &a, system_library(cx, "libm.stub.so", "-lm"));
    arg(cx, &a, system_library(cx, "libc.stub.so", "-lc"));
    if (is_lld(tool)) {
        const char *script = lld_script(cx);
        if (!script) return false;
        args(cx, &a, (const char *const[]){"-T", script, NULL});
    }
    return spawn(cx, &a);
}

/* ---- archives: "!<arch>\n", then members, each a header of 60 bytes and its bytes, padded to even */

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

/* The object is the last member, so that it may grow (constants.c). */
static bool archive_text(Ctx *cx, const char *name, const char *object, Text *t) {
    const char *path = runtime_archive(cx);
    Str bytes;
    text_put(t, S("!<arch>\n"));
    if (!path || !file_read(cx->arena, cx->diags, path, ALL_OF_IT, &bytes)) return false;
    if (!put_members(t, bytes)) return diag_plain(cx->diags, "'%s' is no archive", path);
    if (!file_read(cx->arena, cx->diags, object, ALL_OF_IT, &bytes)) return false;
    put_member(t, str_format(cx->arena, "%.8s.o/", name).at, bytes);
    return true;
}

/* `ar s` adds the symbol index. */
bool link_archive(Ctx *cx, const char *name, const char *object, const Output *out) {
    Text text = {.arena = cx->arena};
    if (!archive_text(cx, name, object, &text)) return false;
    const char *tool = find_tool(cx, (const char *const[]){"ar", "llvm-ar", NULL});
    if (!tool) return diag_plain(cx->diags, "no archiver: neither 'ar' nor 'llvm-ar' is in PATH");
    Args a = {0};
    args(cx, &a, (const char *const[]){tool, "s", out->to, NULL});
    return output_write(cx->diags, out, (Str){text.at, text.n}) && spawn(cx, &a);
}
