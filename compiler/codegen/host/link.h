/* Object files → library: runs the system's linker. */
#ifndef JAXCC_LINK_H
#define JAXCC_LINK_H
#include "../../output.h"
#include "../emit/emit.h"

/* Is the system's linker lld? */
bool link_by_lld(Ctx *);
/* Links the objects and the runtime to the shared library `out`, whose soname is the last component of its path. False
   after a diagnostic. */
bool link_so(Ctx *, const Objects *, const Output *out);
/* The same as a static archive: the object, called after the program `name`, and the runtime's members. */
bool link_archive(Ctx *, const char *name, const char *object, const Output *out);

#endif
