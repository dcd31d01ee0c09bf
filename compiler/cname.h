/* Identifiers of C and C++. */
#ifndef JAXCC_CNAME_H
#define JAXCC_CNAME_H
#include "str.h"

bool cname_valid(Str);   /* an identifier or a keyword */
bool cname_keyword(Str); /* of C, C++, of the header's own types, or a macro of the C headers */
/* An identifier made from any text: other bytes become `_`, a keyword gets `_` appended. */
Str cname_from(Arena *, Str);

#endif
