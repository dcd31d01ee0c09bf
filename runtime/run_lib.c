/* The programs of a library: its ELF notes of owner "jaxcc" and type 1 hold their names. */
#include "run.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const unsigned char *at;
    uint64_t n;
} Bytes;

/* The next note of a segment; false at its end. */
static bool next_note(Bytes *b, Elf64_Nhdr *h, const char **owner, const char **text) {
    if (b->n < sizeof *h) return false;
    memcpy(h, b->at, sizeof *h);
    uint64_t name = ((uint64_t)h->n_namesz + 3) & ~3ull, desc = ((uint64_t)h->n_descsz + 3) & ~3ull;
    if (name > b->n - sizeof *h || desc > b->n - sizeof *h - name) return false;
    *owner = (const char *)b->at + sizeof *h;
    *text = *owner + name;
    b->at += sizeof *h + name + desc;
    b->n -= sizeof *h + name + desc;
    return true;
}

/* Is the address in the library itself, not in another library or in jaxcc-run? */
static bool own(const Library *l, const void *address) {
    struct link_map *library, *of;
    Dl_info info;
    return address && !dlinfo(l->handle, RTLD_DI_LINKMAP, &library) &&
           dladdr1(address, &info, (void **)&of, RTLD_DL_LINKMAP) && of == library;
}

/* The result of the library's NAME_program(); NULL if there is none. */
static const jaxcc_program *program(const Library *l, const char *symbol) {
    const jaxcc_program *(*get)(void);
    void *found = dlsym(l->handle, symbol);
    memcpy(&get, &found, sizeof get);
    return own(l, found) ? get() : NULL;
}

static bool add_program(Library *l, const char *path, const char *name) {
    char symbol[1024];
    snprintf(symbol, sizeof symbol, "%s_program", name);
    const jaxcc_program *p = program(l, symbol);
    if (!p) return run_error("'%s' lists the program '%.200s' but has no '%.200s'", path, name, symbol);
    if (p->version < 1 || p->size < sizeof *p)
        return run_error("'%s': program '%.200s' was made by an unknown version of jaxcc", path, name);
    void *call;
    memcpy(&call, &p->call, sizeof call);
    if (!own(l, call)) return run_error("'%s': '%.200s' is code of another library", path, name);
    const jaxcc_program **more = run_alloc(l->n + 1, sizeof *more);
    if (l->n) memcpy(more, l->at, l->n * sizeof *more);
    free(l->at);
    l->at = more;
    l->at[l->n++] = p;
    return true;
}

static bool add_notes(Library *l, const char *path, Bytes segment) {
    Elf64_Nhdr h;
    const char *owner, *text;
    while (next_note(&segment, &h, &owner, &text)) {
        if (h.n_type != 1 || h.n_namesz != 6 || memcmp(owner, "jaxcc", 6)) continue;
        if (!memchr(text, 0, h.n_descsz)) return run_error("'%s': a note is wrong", path);
        if (!add_program(l, path, text)) return false;
    }
    return true;
}

/* The file is whole (elf_check). */
static bool read_elf(Library *l, const char *path, Bytes file) {
    Elf64_Ehdr e;
    memcpy(&e, file.at, sizeof e);
    for (unsigned i = 0; i < e.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, file.at + e.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_NOTE && !add_notes(l, path, (Bytes){file.at + p.p_offset, p.p_filesz})) return false;
    }
    return l->n || run_error("'%s' has no program of jaxcc", path);
}

/* For a name without a slash dlopen would search other folders. */
static bool load(const char *path, Library *l) {
    char *full = run_alloc(strlen(path) + 3, 1);
    sprintf(full, "%s%s", strchr(path, '/') ? "" : "./", path);
    l->handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    free(full);
    return l->handle || run_error("cannot load '%s': %s", path, dlerror());
}

bool library_open(const char *path, Library *l) {
    *l = (Library){0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) return run_error("cannot open '%s': %s", path, strerror(errno));
    void *map =
        S_ISREG(st.st_mode) && st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED) return run_error("'%s' is no shared library", path);
    Bytes file = {map, (uint64_t)st.st_size};
    bool good = elf_check(path, file.at, file.n) && survives(path, load, l);
    if (good) report_faults();
    good = good && load(path, l) && read_elf(l, path, file);
    munmap(map, (size_t)st.st_size);
    if (!good) library_close(l);
    return good;
}

void library_close(Library *l) {
    free(l->at);
    if (l->handle) dlclose(l->handle);
    *l = (Library){0};
}
