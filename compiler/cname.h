/* Names in C and C++. */
#ifndef JAXCC_CNAME_H
#define JAXCC_CNAME_H
#include "str.h"

bool cname_valid(Str);   /* an identifier, keyword or not */
bool cname_keyword(Str); /* of C, C++ or the header's own types */
/* An identifier for any text: other bytes become `_`, a keyword gets `_` appended. */
Str cname_from(Arena *, Str);

#endif
