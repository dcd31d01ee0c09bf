#include "codegen.h"
#include "../file.h"
#include "../options.h"
#include "../timer.h"
#include "emit.h"
#include "host.h"
#include "link.h"
#include <unistd.h>

static bool linked(Ctx *cx, Emit *e, const Jaxpr *j, EmitKind kind, const char *out) {
    char *object = file_temporary(cx->arena, cx->diags);
    if (!object) return false;
    const char *objects[1] = {object};
    bool ok = emit_write(e, j, EMIT_obj, object);
    if (ok) timer_stage(cx->timer, "link");
    ok = ok && (kind == EMIT_so ? link_so(cx, objects, 1, out) : link_archive(cx, objects, 1, out));
    unlink(object);
    return ok;
}
bool codegen(Ctx *cx, const Jaxpr *j, EmitKind kind, const char *out) {
    Target target;
    if (!target_from_options(cx, &target)) return false;
    timer_stage(cx->timer, "plan");
    Plan *p = plan(cx, j, target.vector_bytes);
    if (!p) return false;
    Emit *e = emit_open(cx, target);
    host_entry(p, e, j);
    bool ok = kind == EMIT_so || kind == EMIT_a ? linked(cx, e, j, kind, out)
                                                : emit_write(e, j, kind, out);
    emit_close(e);
    return ok;
}
