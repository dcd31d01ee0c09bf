/* Truncated or damaged libraries: the loader trusts what it maps, and so do callers. */
#include "run.h"
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- do the headers stay within the file? */
typedef struct {
    const unsigned char *at;
    uint64_t n;
} File;

/* `count` entries of `size` bytes from `at` on. */
static bool holds(File f, uint64_t at, uint64_t count, uint64_t size) {
    return at <= f.n && (!size || count <= (f.n - at) / size);
}
static bool is_whole(File f) {
    Elf64_Ehdr e;
    if (f.n < sizeof e) return false;
    memcpy(&e, f.at, sizeof e);
    if (e.e_phentsize != sizeof(Elf64_Phdr) || !holds(f, e.e_phoff, e.e_phnum, sizeof(Elf64_Phdr))) return false;
    if (e.e_shoff && !holds(f, e.e_shoff, e.e_shnum, sizeof(Elf64_Shdr))) return false;
    for (unsigned i = 0; i < e.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, f.at + e.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type != PT_NULL && !holds(f, p.p_offset, p.p_filesz, 1)) return false;
    }
    return true;
}
bool elf_check(const char *path, const void *at, uint64_t n) {
    const unsigned char *magic = at;
    uint64_t least = n < SELFMAG ? n : SELFMAG;
    if (!n || memcmp(magic, ELFMAG, least) || (n > EI_CLASS && magic[EI_CLASS] != ELFCLASS64))
        return run_error("'%s' is no shared library", path);
    return is_whole((File){at, n}) || run_error("'%s' is cut off", path);
}

/* ---- loading, tried in a child: damaged tables crash the loader */
enum { PATIENCE = 20 }; /* seconds */

bool survives(const char *path, bool (*load)(const char *path, Library *), Library *l) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0) dup2(nowhere, 1), dup2(nowhere, 2);
        alarm(PATIENCE);
        load(path, l);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status == 0) return true;
    return run_error("'%s' is damaged: loading it ends with %s", path,
                     WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "an error of the loader");
}

/* ---- calls that crash */
#ifdef __SANITIZE_ADDRESS__
void report_faults(void) {} /* the sanitizer reports */
#else
static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0) _exit(1);
}
static void caught(int number) {
    say("jaxcc-run: error: the library ended with ");
    say(number == SIGILL    ? "an illegal instruction"
        : number == SIGFPE  ? "an arithmetic fault"
        : number == SIGABRT ? "an abort"
        : number == SIGTRAP ? "a trap"
                            : "a memory fault");
    say("; it is damaged, or has a bug\n");
    _exit(1);
}
void report_faults(void) {
    size_t size = 64 << 10; /* a stack of its own: the usual one may have overflowed */
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) sigaltstack(&(stack_t){.ss_sp = at, .ss_size = size}, NULL);
    struct sigaction action = {.sa_handler = caught, .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND)};
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}
#endif
