/* --report: the file. */
#ifndef JAXCC_REPORT_FILE_H
#define JAXCC_REPORT_FILE_H
#include "codegen.h"

/* Writes what cx->report has collected, if there is one; false after a diagnostic. */
bool report_write(Ctx *, Programs);

#endif
