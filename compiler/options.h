/* The parsed command line. */
#ifndef JAXCC_OPTIONS_H
#define JAXCC_OPTIONS_H
#include "ir.h"
#include "output.h"

#define JAXCC_VERSION "0.1.0"

/* --ffi NAME=LIBRARY:SYMBOL */
typedef struct {
    Str name, library, symbol;
} FfiBinding;

/* --rule NAME=JVP or NAME=FWD,BWD */
typedef struct {
    Str name;
    const char *file[2]; /* the second: NULL, or bwd */
} RuleFiles;

/* A transformation of the program, as --grad=0,2. */
typedef enum {
    TRANSFORM_JVP,
    TRANSFORM_VJP,
    TRANSFORM_GRAD,
    TRANSFORM_VALUE_AND_GRAD,
    TRANSFORM_VMAP,
    TRANSFORM_JACFWD,
    TRANSFORM_JACREV,
    TRANSFORM_HESSIAN,
    TRANSFORM_LINEARIZE /* the last one: it gives two programs */
} TransformKind;
enum { UNBATCHED = -1 }; /* in place of an axis */
typedef struct {
    TransformKind kind;
    const char *text;    /* for messages: "--grad=0,2" */
    const char *before;  /* the one whose program this one takes, "--jvp"; NULL: the text */
    Ints args;           /* of grad, value-and-grad, jacfwd, jacrev, hessian: numbers of inputs */
    Ints axes, out_axes; /* of vmap: by input and result; the last one is repeated */
    const char *dim;     /* of vmap: the name of the batch dimension; NULL: batch, batch2, ..., */
    const char *axis;    /* of vmap: the name of the axis in collectives; NULL: none */
    uint32_t nth;        /* by how many --vmap came before it */
    bool differentiated; /* another one differentiates what it makes */
} Transform;
typedef struct {
    Transform *at;
    uint32_t n, cap;
} Transforms;
enum { MOST_LEVELS = 8 }; /* of --remat */

/* --entry 'NAME:FLAGS': one more function of the library. */
typedef struct {
    const char *name;
    Transforms transforms;
} LibraryEntry;

/* What loops keep for the backward part. */
typedef enum {
    KEEP_LEAST,    /* what takes the least memory without computing again what is expensive */
    KEEP_CARRY,    /* nothing that can be computed again */
    KEEP_DOTS,     /* the products of matrices */
    KEEP_SEGMENTS, /* the carry at the beginning of segments */
} Keep;

/* What --vmap makes of a cond whose index differs between the examples. */
typedef enum {
    BRANCHES_SKIP,   /* all branches for all examples; one that takes long only if an example takes it */
    BRANCHES_EACH,   /* the cond for one example after the other */
    BRANCHES_SELECT, /* all branches for all examples */
} Branches;

struct Options {
    const char *input, *output; /* "-": standard input, standard output */
    EmitKind emit;
    const char *name;   /* of the C function; a C identifier */
    const char *header; /* path, or NULL: none */
    const char *report; /* --report: path, .html or .json; or NULL */
    const char *in_type, *consts;
    struct {
        Str name;
        int64_t value;
    } *dims; /* -D */
    uint32_t ndims;
    FfiBinding *ffi;
    uint32_t nffi;
    struct {
        RuleFiles *at;
        uint32_t n, cap;
    } rules;
    Transforms transforms; /* of the main function, in order */
    int64_t tape;          /* the most iterations of a while in reverse mode; 0: it counts them */
    Keep keep;             /* of loops without remat in their programs */
    int64_t levels;        /* of segments: T iterations keep T^(1/levels) carries of each */
    Branches branches;     /* of a cond in a batch */
    struct {
        LibraryEntry *at;
        uint32_t n, cap;
    } entries;
    const char *march, *mcpu, *target; /* NULL: the machine that jaxcc runs on */
    int opt;                           /* -O0 … -O3 */
    bool threefry_original;            /* random bits as before JAX 0.5.0 */
    bool threefry_given;               /* --threefry-partitionable says which */
    bool nested_types;                 /* --emit=types=all */
    bool no_contraction;               /* -ffp-contract=off */
    bool device_pointers;              /* arrays are memory of the GPU */
    bool dlpack;                       /* the library has NAME_dlpack */
    bool debug, fast_math, debug_nans, check_bounds, check_only, no_check, passes, verify, verbose, time_report,
        save_temps;
    const char *dep_file; /* -MF, NULL: none */
    bool phony_deps;      /* -MP */
};

/* Is the code for GPUs (--target=nvptx64 or one of its other names)? */
bool options_for_device(const Options *);
/* Is --report a page? Else it is JSON. */
bool options_report_page(const Options *);
/* What takes less memory for what loops keep for the backward part, after a message: "; see --remat=sqrt". Empty if
   nothing does, or if no function is a derivative in reverse. */
Str options_less_memory(Arena *, const Options *);

/* The name of a --vmap's batch dimension: its own, or batch, batch2, ... by its number `nth` from 1 on. */
Str batch_name(Arena *, const Transform *, uint32_t nth);
/* Reads the command line and enables warnings in the Diags. The result is OPTIONS_GO, or the exit status: 0 after
   --help and --version, 2 after a message about a wrong command line. */
enum { OPTIONS_GO = -1 };
int options_read(Arena *, Diags *, int argc, char **argv, Options *);

#endif
