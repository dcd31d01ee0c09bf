#include "consts.h"

bool consts_bind(Ctx *cx, Jaxpr *j, const char *path) {
    return diag_plain(cx->diags, "--consts is not supported yet");
}
