#include "output.h"
#include "file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The only global state, since signal handlers have no argument: files to be renamed, copied or removed, running tools,
   and inputs. It is changed while signals are blocked. */
typedef enum { RENAMED, COPIED, REMOVED, LEFT } Fate;
typedef struct {
    Output output;
    const char *target; /* `path` with symbolic links resolved */
    const char *old;    /* where the previous `target` is now; NULL: there was none, or it has not been moved */
    Fate fate;
} Entry;
typedef struct {
    dev_t device;
    ino_t number;
} File;
enum { MOST_FILES = 32, MOST_INPUTS = 1024, MOST_LINKS = 40 };
static struct {
    Entry files[MOST_FILES];
    unsigned n;
    pid_t child;
    File inputs[MOST_INPUTS];
    unsigned n_inputs;
} open_now;

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};
enum { NENDS = sizeof ends / sizeof *ends };

static sigset_t hold(void) {
    sigset_t set, old;
    sigemptyset(&set);
    for (unsigned i = 0; i < NENDS; i++) sigaddset(&set, ends[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    return old;
}
static void let(sigset_t old) { sigprocmask(SIG_SETMASK, &old, NULL); }

/* ---- an early end */
void output_remove(void) {
    int saved = errno;
    if (open_now.child > 0) {
        kill(-open_now.child, SIGKILL);
        while (waitpid(open_now.child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    for (unsigned i = 0; i < open_now.n; i++)
        if (open_now.files[i].fate != LEFT) unlink(open_now.files[i].output.to);
    open_now.child = 0;
    open_now.n = 0;
    errno = saved;
}
/* The process dies of the signal, as its parent expects. A handler that the kernel resets (SA_RESETHAND) would not do:
   a second signal could end the process before the handler has begun. */
static void ended(int number) {
    output_remove();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}
void output_guard(void) {
    struct sigaction action = {.sa_handler = ended}, old;
    for (unsigned i = 0; i < NENDS; i++) sigaddset(&action.sa_mask, ends[i]);
    for (unsigned i = 0; i < NENDS; i++)
        if (!sigaction(ends[i], NULL, &old) && old.sa_handler == SIG_DFL) sigaction(ends[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* if it is ignored, no child can be waited for */
    atexit(output_remove);
}

/* ---- opening */
static bool failed(Diags *diags, const char *path) {
    return diag_plain(diags, "cannot write '%s': %s", strcmp(path, "-") ? path : "standard output", strerror(errno));
}

/* Creates an empty file FOLDER/jaxcc-PID-N.tmp with the usual mode and registers it; NULL with errno. */
static Entry *create(Arena *arena, Str folder, Entry e) {
    if (open_now.n == MOST_FILES) return errno = EMFILE, NULL;
    sigset_t old = hold();
    Entry *made = NULL;
    for (unsigned n = 0; n < 10000 && !made; n++) {
        const char *path = str_format(arena, "%.*sjaxcc-%ld-%u.tmp", SF(folder), (long)getpid(), n).at;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
        if (fd < 0) continue;
        close(fd);
        e.output.to = path;
        made = &open_now.files[open_now.n++];
        *made = e;
    }
    let(old);
    return made;
}

static Str temporary_folder(Arena *arena) {
    const char *dir = getenv("TMPDIR");
    return str_format(arena, "%s/", dir && *dir ? dir : "/tmp");
}
/* The folder with its slash; empty if the path has none. */
static Str folder_of(const char *path) {
    Str base = path_base(str(path));
    return (Str){path, (uint32_t)(base.at - path)};
}

const char *output_folder(Arena *arena, const char *path) {
    Str folder = file_is_regular(path) ? folder_of(path) : temporary_folder(arena);
    return str_format(arena, "%.*s.", SF(folder)).at;
}

/* The path of a file, which need not exist, with symbolic links resolved: two names of one file give the same. In a
   folder that does not exist it is the path itself, which cannot be written; NULL with errno if there is no path. */
static const char *behind_links(Arena *arena, const char *path) {
    char to[PATH_MAX];
    char *real = NULL;
    ssize_t n = 0;
    for (unsigned i = 0; n >= 0 && i < MOST_LINKS && !(real = realpath(path, NULL)) && errno == ENOENT; i++)
        if ((n = readlink(path, to, sizeof to)) >= 0) {
            Str folder = *to == '/' ? S("") : folder_of(path);
            path = str_format(arena, "%.*s%.*s", SF(folder), (int)n, to).at;
        }
    Str base = {0}, folder = folder_of(path);
    if (!real && n < 0) {
        base = path_base(str(path));
        real = base.n ? realpath(str_format(arena, "%.*s.", SF(folder)).at, NULL) : NULL;
        if (!real) return path;
    }
    if (!real) return NULL;
    const char *slash = base.n && strcmp(real, "/") ? "/" : "";
    path = str_format(arena, "%s%s%.*s", real, slash, SF(base)).at;
    free(real);
    return path;
}

void output_input(const char *path) {
    struct stat st;
    assert(open_now.n_inputs < MOST_INPUTS);
    if (!(strcmp(path, "-") ? stat(path, &st) : fstat(0, &st)))
        open_now.inputs[open_now.n_inputs++] = (File){st.st_dev, st.st_ino};
}
static bool is_input(const char *path) {
    struct stat st;
    bool found = false;
    for (unsigned i = 0; i < open_now.n_inputs && !stat(path, &st); i++)
        found |= open_now.inputs[i].device == st.st_dev && open_now.inputs[i].number == st.st_ino;
    return found;
}
/* Is there another output of that name, which would be lost? */
static bool twice(const char *target) {
    for (unsigned i = 0; i < open_now.n; i++)
        if (open_now.files[i].target && strcmp(open_now.files[i].target, target) == 0) return true;
    return false;
}

const Output *output_open(Arena *arena, Diags *diags, const char *path, bool file) {
    bool special = !file_is_regular(path);
    struct stat st;
    if (special && strcmp(path, "-") != 0 && !stat(path, &st) && S_ISDIR(st.st_mode))
        return errno = EISDIR, failed(diags, path), NULL;
    if (special && !file) {
        Output *o = arena_new(arena, Output, 1);
        *o = (Output){path, path};
        return o;
    }
    Entry e = {
        .output.path = path, .target = special ? path : behind_links(arena, path), .fate = special ? COPIED : RENAMED};
    if (!e.target) return failed(diags, path), NULL;
    bool input = !special && is_input(path);
    if (input || (!special && twice(e.target))) {
        diag_plain(diags, input ? "'%s' is an input, and would be overwritten" : "'%s' would be written twice", path);
        return NULL;
    }
    Entry *made = create(arena, special ? temporary_folder(arena) : folder_of(e.target), e);
    return made ? &made->output : (failed(diags, path), NULL);
}

const char *output_scratch(Arena *arena, Diags *diags, const Output *beside) {
    Str folder = beside ? folder_of(beside->to) : temporary_folder(arena);
    Entry *made = create(arena, folder, (Entry){.fate = REMOVED});
    if (made) return made->output.to;
    diag_plain(diags, "cannot make a file in '%.*s': %s", SF(folder), strerror(errno));
    return NULL;
}

bool output_write(Diags *diags, const Output *o, Str text) { return file_write(diags, o->to, o->path, text); }

/* ---- the end */
static bool copy(const Entry *e) {
    bool out = strcmp(e->output.path, "-") == 0;
    int from = open(e->output.to, O_RDONLY | O_CLOEXEC), to = out ? 1 : open(e->target, O_WRONLY | O_CLOEXEC);
    enum { PIECE = 1 << 16 };
    char bytes[PIECE];
    ssize_t n = -1;
    while (from >= 0 && to >= 0 && (n = read(from, bytes, PIECE)) > 0)
        if (!file_put(to, (Str){bytes, (uint32_t)n})) {
            n = -1;
            break;
        }
    if (from >= 0) close(from);
    if (to >= 0 && !out && close(to)) n = -1;
    return n == 0;
}

/* Gives the file its name; an existing file gets the temporary name or, if the file system cannot exchange names,
   another one. */
static bool rename_one(Arena *arena, Entry *e) {
    if (!renameat2(AT_FDCWD, e->output.to, AT_FDCWD, e->target, RENAME_EXCHANGE)) {
        e->old = e->output.to;
        return true;
    }
    struct stat st;
    if (!lstat(e->target, &st)) {
        Entry *aside = create(arena, folder_of(e->target), (Entry){.fate = REMOVED});
        if (!aside || unlink(aside->output.to)) return false;
        if (link(e->target, aside->output.to) && rename(e->target, aside->output.to)) return false;
        e->old = aside->output.to;
    }
    return !rename(e->output.to, e->target);
}

/* A file that cannot be put back stays under its temporary name. */
static void put_back(Diags *diags, const Entry *e) {
    if (!rename(e->old, e->target)) return;
    diag_plain(diags, "the old '%s' is now '%s': %s", e->output.path, e->old, strerror(errno));
    for (unsigned i = 0; i < open_now.n; i++)
        if (open_now.files[i].output.to == e->old) open_now.files[i].fate = LEFT;
}

static bool rename_all(Arena *arena, Diags *diags) {
    for (unsigned i = 0; i < open_now.n; i++) {
        Entry *e = &open_now.files[i];
        if (e->fate != RENAMED || rename_one(arena, e)) continue;
        failed(diags, e->output.path);
        for (unsigned k = 0; k <= i; k++) {
            const Entry *done = &open_now.files[k];
            if (done->old)
                put_back(diags, done);
            else if (done->fate == RENAMED && k < i)
                unlink(done->target);
        }
        return false;
    }
    return true;
}

bool output_close(Arena *arena, Diags *diags, bool good) {
    for (unsigned i = 0; i < open_now.n && good; i++)
        if (open_now.files[i].fate == COPIED && !copy(&open_now.files[i]))
            good = failed(diags, open_now.files[i].output.path);
    sigset_t old = hold();
    good = good && rename_all(arena, diags);
    output_remove();
    let(old);
    return good;
}

/* ---- tools */
int output_run(int (*start)(void *user, pid_t *child), void *user, pid_t *child) {
    sigset_t old = hold();
    int error = start(user, child);
    if (!error) open_now.child = *child;
    let(old);
    return error;
}
/* It is reaped only after it has been forgotten: its number could be reused. */
int output_wait(pid_t child) {
    siginfo_t info;
    int status;
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    sigset_t old = hold();
    if (waitpid(child, &status, 0) < 0) status = -1;
    open_now.child = 0;
    let(old);
    return status;
}
