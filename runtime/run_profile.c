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
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
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
    qsort(p->at, p->n, sizeof *p->at, by_address);
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
/* Another file, by its name; the first `n` places are of the library. */
static Place *other_file(Places *p, uint32_t n, const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path ? path : "unknown";
    for (uint32_t i = n; i < p->n; i++)
        if (!strcmp(p->at[i].name, name)) return &p->at[i];
    return add(p, (Place){name, 0, 0, 0});
}
static void find_samples(Places *p, const void *base) {
    uint32_t n = p->n;
    for (uint32_t i = 0; i < count; i++) {
        Dl_info info = {0};
        void *at;
        memcpy(&at, &samples[i], sizeof at);
        bool found = dladdr(at, &info);
        Place *place = found && info.dli_fbase == base ? place_of(p, n, samples[i] - (uint64_t)base) : NULL;
        if (!place) place = other_file(p, n, found ? info.dli_fname : NULL);
        place->samples++;
    }
}

/* ---- the file */
typedef struct {
    const Places *places;
    const char *program;
    double ns;
} Profile;
static void put_name(FILE *f, const char *c) {
    fputc('"', f);
    for (; *c; c++)
        fprintf(f, (unsigned char)*c < 0x20 || *c == '"' || *c == '\\' ? "\\u%04x" : "%c", (unsigned char)*c);
    fputc('"', f);
}
static bool put_profile(FILE *f, const void *profile) {
    const Profile *p = profile;
    const char *comma = "";
    fputs("{\"program\":", f), put_name(f, p->program);
    fprintf(f, ",\"nanoseconds\":%.1f,\"samples\":%u,\"symbols\":{", p->ns, count);
    for (uint32_t i = 0; i < p->places->n; i++) {
        const Place *at = &p->places->at[i];
        if (!at->samples) continue;
        fputs(comma, f), put_name(f, at->name);
        fprintf(f, ":%.1f", p->ns * at->samples / count);
        comma = ",";
    }
    return fputs("}}\n", f) >= 0;
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
    Places places = {map, (uint64_t)st.st_size, NULL, 0, 0};
    bool good = elf_check(library, map, places.bytes);
    if (good) {
        read_symbols(&places), find_samples(&places, info.dli_fbase);
        good = npz_write_file(file, put_profile, &(Profile){&places, program->name, 1e9 * seconds}, &e) ||
               run_error("%s", e.text);
    }
    munmap(map, (size_t)st.st_size);
    free(places.at), free(samples);
    return good;
}
