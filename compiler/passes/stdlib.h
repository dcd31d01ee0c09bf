/* The texts of stdlib/ that the compiler contains, and programs that are read from them. */
#ifndef JAXCC_STDLIB_H
#define JAXCC_STDLIB_H
#include "../ir.h"

typedef struct {
    const char *name, *text;
    uint32_t n; /* bytes of the text */
} TextFile;
/* stdlib/NAME.jaxpr, stdlib/rules/NAME.jaxpr: written by the Makefile, in order of their names; a row of zeros ends
   each. */
extern const TextFile stdlib_files[], rule_files[];

/* The program as the text has it; NULL after errors. `folder`: of the file, for messages. */
Jaxpr *text_file_read(Ctx *, const TextFile *, const char *folder);

#endif
