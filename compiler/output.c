#include "output.h"
#include "file.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signal handlers have no argument, so that this is the one state of the process: what is to be renamed, copied or removed, and who runs. It
   is changed while signals are blocked. */
typedef enum { RENAMED, COPIED, REMOVED } Fate;
typedef struct {
    Output output;
    const char *target; /* of `path`, behind symbolic links */
    Fate fate;
} Entry;
enum { MOST_FILES = 32 };
static struct {
    Entry files[MOST_FILES];
    unsigned n;
    pid_t child;
} open_now;

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};
enum { NENDS = sizeof ends / sizeof *ends };

static sigset_t hold(void) {
    sigset_t set, old;
    sigemptyset(&set);
    for (unsigned i = 0; i < NENDS; i++)
        sigaddset(&set, ends[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    return old;
}
static void let(sigset_t old) { sigprocmask(SIG_SETMASK, &old, NULL); }

/* ---- the end that comes too early */
void output_remove(void) {
    int saved = errno;
    if (open_now.child > 0) {
        kill(-open_now.child, SIGKILL);
        while (waitpid(open_now.child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    for (unsigned i = 0; i < open_now.n; i++)
        unlink(open_now.files[i].output.to);
    open_now.child = 0;
    open_now.n = 0;
    errno = saved;
}
/* The process dies of the signal, as who waits for it expects. A handler that the kernel resets (SA_RESETHAND) would not do: a second signal
   may then end the process before it has begun. */
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
    for (unsigned i = 0; i < NENDS; i++)
        sigaddset(&action.sa_mask, ends[i]);
    for (unsigned i = 0; i < NENDS; i++)
        if (!sigaction(ends[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN);
    atexit(output_remove);
}

/* ---- opening */
static bool failed(Diags *diags, const char *path) {
    return diag_plain(diags, "cannot write '%s': %s", path, strerror(errno));
}

/* A new empty file FOLDER/jaxcc-PID-N.tmp with the usual mode, which is entered; NULL with errno. */
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
/* With the slash; nothing where there is none. */
static Str folder_of(const char *path) {
    Str base = path_base(str(path));
    return (Str){path, (uint32_t)(base.at - path)};
}

const char *output_folder(Arena *arena, const char *path) {
    Str folder = file_is_regular(path) ? folder_of(path) : temporary_folder(arena);
    return str_format(arena, "%.*s.", SF(folder)).at;
}

/* What was written to a file of that name before would be lost. */
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
    char *real = realpath(path, NULL);
    Entry e = {{path, NULL}, str_c(arena, str(real ? real : path)), special ? COPIED : RENAMED};
    free(real);
    if (!special && twice(e.target)) {
        diag_plain(diags, "'%s' would be written twice", path);
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

bool output_write(Diags *diags, const Output *o, Str text) {
    return file_write(diags, o->to, o->path, text);
}

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

/* Gives the file its name; the one that had it takes the temporary one, where the file system can do that. */
static bool rename_one(Entry *e, bool *exchanged) {
    *exchanged = !renameat2(AT_FDCWD, e->output.to, AT_FDCWD, e->target, RENAME_EXCHANGE);
    return *exchanged || !rename(e->output.to, e->target);
}

static bool rename_all(Diags *diags) {
    bool exchanged[MOST_FILES] = {false};
    for (unsigned i = 0; i < open_now.n; i++) {
        Entry *e = &open_now.files[i];
        if (e->fate != RENAMED || rename_one(e, &exchanged[i])) continue;
        failed(diags, e->output.path);
        for (unsigned k = 0; k < i; k++) {
            const Entry *done = &open_now.files[k];
            if (exchanged[k]) rename(done->output.to, done->target);
            else if (done->fate == RENAMED) unlink(done->target);
        }
        return false;
    }
    return true;
}

bool output_close(Diags *diags, bool good) {
    for (unsigned i = 0; i < open_now.n && good; i++)
        if (open_now.files[i].fate == COPIED && !copy(&open_now.files[i]))
            good = failed(diags, open_now.files[i].output.path);
    sigset_t old = hold();
    good = good && rename_all(diags);
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
int output_wait(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            status = -1;
            break;
        }
    open_now.child = 0;
    return status;
}
