/* The rules that are text: stdlib/jvp.jaxpr. */
#include "tx.h"

bool jvp_text(Jvp *d) { return jvp_none(d); }
