/* Object files → library: runs the system's linker. */
#ifndef JAXCC_LINK_H
#define JAXCC_LINK_H
#include "../ir.h"

/* Links objects and the runtime to the shared library `out`; its soname is the last part of `out`.
   False after a diagnostic; then `out` is as it was. */
bool link_so(Ctx *, const char *const *objects, uint32_t n, const char *out);
/* The same as a static archive: the objects, and the runtime as separate members. */
bool link_archive(Ctx *, const char *const *objects, uint32_t n, const char *out);

#endif
