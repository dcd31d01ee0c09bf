/* Text → program. */
#ifndef JAXCC_PARSE_H
#define JAXCC_PARSE_H
#include "../ir.h"

enum { MOST_BYTES = 1 << 27 }; /* of a text */

/* Parses source `file` (diags_source). After it nobody knows in which era the text was written: old
   spellings are today's primitives. Types are 0 where the text prints none. NULL after a
   diagnostic; where names alone are wrong, Ctx.misnamed is what was read. */
Jaxpr *parse(Ctx *, uint32_t file);

/* The types of --in-type='f32[8], f32[b,4]' or of a .sig file; errors are reported at places of
 * source `file`. */
bool parse_types(Ctx *, uint32_t file, Type **types, uint32_t *n);

#endif
