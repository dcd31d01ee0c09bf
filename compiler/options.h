/* The command line, read. */
#ifndef JAXCC_OPTIONS_H
#define JAXCC_OPTIONS_H
#include "codegen/codegen.h"

struct Options {
    const char *input, *output;
    EmitKind emit;
    const char *name;       /* of the C function; a C identifier */
    const char *header;     /* path, or NULL: none */
    const char *in_type, *consts;
    struct {
        Str name;
        int64_t value;
    } *dims; /* -D */
    uint32_t ndims;
    const char *march, *mcpu, *target; /* NULL: the machine it runs on */
    int opt; /* -O0 … -O3 */
    bool debug, fast_math, check_only, no_check, verify, verbose, time_report, save_temps;
    const char *dep_file; /* -MF, NULL: none */
};

#endif
