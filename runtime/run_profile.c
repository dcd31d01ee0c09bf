/* --profile: a clock interrupts this thread; where it was is looked up in the library's table of symbols. */
#include "run.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { INTERVAL = 200000 /* ns */, MOST = 1 << 20 /* samples: three minutes */ };
static uint64_t *samples;
static volatile uint32_t count;
static timer_t clock_of_samples;

static void interrupted(int number, siginfo_t *info, void *context) {
    const ucontext_t *c = context;
    if (count < MOST) samples[count++] = (uint64_t)c->uc_mcontext.gregs[REG_RIP];
}

bool profile_begin(void) {
    struct sigaction action = {.sa_sigaction = interrupted, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF, ._sigev_un._tid = gettid()};
    struct itimerspec each = {{0, INTERVAL}, {0, INTERVAL}};
    samples = run_alloc(MOST, sizeof *samples);
    count = 0;
    return (!sigaction(SIGPROF, &action, NULL) && !timer_create(CLOCK_MONOTONIC, &event, &clock_of_samples) &&
            !timer_settime(clock_of_samples, 0, &each, NULL)) ||
           run_error("--profile: no clock: %s", strerror(errno));
}

/* ---- symbols */
typedef struct {
    const char *name;
    uint64_t at, n; /* in the library; 0: another file */
    uint32_t samples;
} Place;
typedef struct {
    const unsigned char *file;
    uint64_t bytes;
    Place *at;
    uint32_t n, cap;
} Places;

static Place *add(Places *p, Place place) {
    if (p->n == p->cap) {
        Place *more = run_alloc(p->cap = 2 * p->cap + 16, sizeof *more);
        if (p->n) memcpy(more, p->at, p->n * sizeof *more);
        free(p->at);
        p->at = more;
    }
    p->at[p->n] = place;
    return &p->at[p->n++];
}
static int by_address(const void *a, const void *b) {
    const Place *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}
static bool section(const Places *p, const Elf64_Ehdr *e, uint32_t number, Elf64_Shdr *s) {
    if (number >= e->e_shnum || e->e_shentsize != sizeof *s) return false;
    memcpy(s, p->file + e->e_shoff + number * sizeof *s, sizeof *s);
    return s->sh_type == SHT_NOBITS || (s->sh_offset <= p->bytes && s->sh_size <= p->bytes - s->sh_offset);
}
static void add_symbols(Places *p, const Elf64_Shdr *table, const Elf64_Shdr *names) {
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, p->file + table->sh_offset + i * sizeof s, sizeof s);
        const char *name = (const char *)p->file + names->sh_offset + s.st_name;
        bool code = ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF;
        if (code && s.st_name < names->sh_size && memchr(name, 0, names->sh_size - s.st_name))
            add(p, (Place){name, s.st_value, s.st_size, 0});
    }
}
/* The functions of the library, by address; the file is whole (elf_check), as when it was loaded. */
static void read_symbols(Places *p) {
    Elf64_Ehdr e;
    Elf64_Shdr table, names;
    memcpy(&e, p->file, sizeof e);
    for (uint32_t i = 0; i < e.e_shnum; i++)
        if (section(p, &e, i, &table) && table.sh_type == SHT_SYMTAB && section(p, &e, table.sh_link, &names) &&
            names.sh_type == SHT_STRTAB)
            add_symbols(p, &table, &names);
    if (p->n) qsort(p->at, p->n, sizeof *p->at, by_address);
}
/* The last place of the first n that begins at or before `at`; NULL: it is in none. */
static Place *place_of(Places *p, uint32_t n, uint64_t at) {
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (p->at[middle].at <= at)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo && at - p->at[lo - 1].at < p->at[lo - 1].n ? &p->at[lo - 1] : NULL;
}
static uint64_t address_of(const void *at) {
    uint64_t n;
    memcpy(&n, &at, sizeof n);
    return n;
}
/* Another file, by its name. */
static Place *other_file(Places *files, const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path ? path : "unknown";
    for (uint32_t i = 0; i < files->n; i++)
        if (!strcmp(files->at[i].name, name)) return &files->at[i];
    return add(files, (Place){name, 0, 0, 0});
}
static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
/* Each address is looked up once. */
static void find_samples(Places *symbols, Places *files, const void *base) {
    qsort(samples, count, sizeof *samples, by_number);
    for (uint32_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && samples[i + same] == samples[i]; same++) continue;
        Dl_info info = {0};
        void *at;
        memcpy(&at, &samples[i], sizeof at);
        bool found = dladdr(at, &info);
        bool own = found && info.dli_fbase == base;
        Place *place = own ? place_of(symbols, symbols->n, samples[i] - address_of(base)) : NULL;
        if (!place) place = other_file(files, found ? info.dli_fname : NULL);
        place->samples += same;
    }
}
static int by_name(const void *a, const void *b) { return strcmp(((const Place *)a)->name, ((const Place *)b)->name); }
/* Local functions of one name are counted together. */
static void join_names(Places *p) {
    if (!p->n) return;
    qsort(p->at, p->n, sizeof *p->at, by_name);
    for (uint32_t i = 1; i < p->n; i++)
        if (!strcmp(p->at[i].name, p->at[i - 1].name))
            p->at[i].samples += p->at[i - 1].samples, p->at[i - 1].samples = 0;
}

/* ---- the file */
typedef struct {
    const Places *symbols, *files;
    const char *program;
    double ns;
} Profile;
static void put_name(FILE *f, const char *c) {
    fputc('"', f);
    for (; *c; c++) {
        unsigned char x = (unsigned char)*c;
        if (x >= 0x80)
            fputs("\\ufffd", f);
        else
            fprintf(f, x < 0x20 || x == '"' || x == '\\' ? "\\u%04x" : "%c", x);
    }
    fputc('"', f);
}
static void put_places(FILE *f, const char *name, const Places *p, double ns) {
    const char *comma = "";
    fprintf(f, ",\"%s\":{", name);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->at[i].samples) continue;
        fputs(comma, f), put_name(f, p->at[i].name);
        fprintf(f, ":%.1f", ns * p->at[i].samples / count);
        comma = ",";
    }
    fputs("}", f);
}
static bool put_profile(FILE *f, const void *profile) {
    const Profile *p = profile;
    fputs("{\"program\":", f), put_name(f, p->program);
    fprintf(f, ",\"nanoseconds\":%.1f,\"samples\":%u", p->ns, count);
    put_places(f, "symbols", p->symbols, p->ns), put_places(f, "files", p->files, p->ns);
    return fputs("}\n", f) >= 0;
}
bool profile_end(const char *file, const char *library, const jaxcc_program *program, double seconds) {
    timer_delete(clock_of_samples);
    signal(SIGPROF, SIG_IGN);
    Dl_info info;
    struct stat st;
    NpzError e;
    void *call, *map = MAP_FAILED;
    memcpy(&call, &program->call, sizeof call);
    int fd = open(library, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st) && st.st_size) map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED || !dladdr(call, &info)) return run_error("cannot read '%s' again", library);
    Places symbols = {map, (uint64_t)st.st_size, NULL, 0, 0}, files = {0};
    bool good = elf_check(library, map, symbols.bytes);
    if (good) {
        read_symbols(&symbols), find_samples(&symbols, &files, info.dli_fbase), join_names(&symbols);
        good = npz_write_file(file, put_profile, &(Profile){&symbols, &files, program->name, 1e9 * seconds}, &e) ||
               run_error("%s", e.text);
    }
    munmap(map, (size_t)st.st_size);
    free(symbols.at), free(files.at), free(samples);
    return good;
}
