/* The parts of jaxcc-run. */
#ifndef JAXCC_RUN_H
#define JAXCC_RUN_H
#include "extent.h"
#include "jaxcc.h"
#include "npz.h"
#include <stddef.h>

/* Prints "jaxcc-run: error: …"; returns false. */
__attribute__((format(printf, 1, 2))) bool run_error(const char *format, ...);
/* Zeroed memory, never NULL: when memory runs out the process ends with status 1. */
void *run_alloc(size_t n, size_t size);

/* The plural ending for n things: "s" unless n is 1. */
const char *plural(int64_t n);

/* ---- run_lib.c: the programs of a library, found by its ELF notes */
typedef struct {
    void *handle;
    const jaxcc_program **at;
    uint32_t n;
} Library;
bool library_open(const char *path, Library *);
void library_close(Library *);

/* ---- run_damage.c */
/* Does everything that the headers of this file describe lie within it? */
bool elf_check(const char *path, const void *at, uint64_t n);
/* Does loading the library succeed without crashing? Tried in a child process. */
bool survives(const char *path, bool (*load)(const char *path, Library *), Library *);
/* From here on a crash ends the process with a message and status 1. */
void report_faults(void);

/* ---- run_end.c */
/* From here on a signal that ends the process leaves no unfinished file, and exceeding a file size limit is an error of
   the write. */
void end_cleanly(void);

/* ---- run_dims.c */
/* Solves for the dimensions, given the inputs' shapes, and checks all extents; false after an error. */
bool dims_solve(const jaxcc_program *, const NpzArray *const *in, jaxcc_rt_variables *);
/* The extents of one type; false after an error, or if the program computes one (`computed`). */
bool dims_of(const jaxcc_type *, const jaxcc_rt_variables *, int64_t *dims, bool *computed);

/* ---- run_guard.c */
/* Calls with arrays of its own, placed against unreadable pages; results are copied to `out`. */
bool run_guarded(const jaxcc_program *, const int64_t *dims, const NpzArray *const *in, NpzArray *out);

/* ---- run_profile.c: where a program's time goes, by a clock that interrupts this thread */
bool profile_begin(void);
/* Writes { "program", "nanoseconds" of a call, "samples", "symbols": { "kernel_0": nanoseconds of a call },
   "files": { … } } to the file: the functions of the library, and other files. */
bool profile_end(const char *file, const char *library, const jaxcc_program *, double seconds);

/* ---- run_stack.c */
/* Calls on a small stack; false after an error, or if the call used more stack than a library may. */
bool run_on_stack(const jaxcc_program *, const int64_t *dims, const void *const *in, void *const *out);

/* ---- run_compare.c */
/* Prints how many elements differ and the largest difference; true if none differ. Negative tolerances mean the
   defaults of the type. */
bool compare_arrays(const char *dtype, double rtol, double atol, const NpzArray *got, const NpzArray *want);

/* ---- run_print.c */
/* The type of an array in jaxpr's spelling, "f32[2,3]"; `dtype` NULL: numpy's type. */
void print_type(char *to, size_t room, const char *dtype, const NpzArray *);
void print_array(const NpzArray *, const char *dtype);
/* Element `i` as numpy prints it; returns the length. */
enum { ELEMENT_TEXT = 100 };
int print_element(char to[ELEMENT_TEXT], const NpzArray *, const char *dtype, int64_t i);
/* Element `i`, its imaginary part if `part` is 1; narrow floats are decoded. */
double element(const NpzArray *, const char *dtype, int64_t i, int part);

#endif
