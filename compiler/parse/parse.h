/* Text → program. */
#ifndef JAXCC_PARSE_H
#define JAXCC_PARSE_H
#include "../ir.h"

enum { MOST_BYTES = 1 << 27 }; /* of a text */

/* Parses source `file` (diags_source). Old spellings become today's primitives, so that later stages do not depend on
   the version that printed the text. Types are 0 where the text prints none. NULL after a diagnostic; if all errors are
   about names, *misnamed is the program that was read; `misnamed` may be NULL. */
Jaxpr *parse(Ctx *, uint32_t file, Jaxpr **misnamed);

/* The types of --in-type='f32[8], f32[b,4]'; errors are reported at places in source `file`. */
bool parse_types(Ctx *, uint32_t file, Type **types, uint32_t *n);

#endif
