#include "codegen.h"
#include "../options.h"
#include "../timer.h"
#include "constants.h"
#include "emit.h"
#include "host.h"
#include "link.h"

static bool linked(Ctx *cx, Emit *e, const Jaxpr *j, EmitKind kind, const Output *out) {
    Output object = {out->path, output_scratch(cx->arena, cx->diags, NULL)};
    if (!object.to || !emit_write(e, j, EMIT_obj, &object)) return false;
    timer_stage(cx->timer, "link");
    return (kind == EMIT_so ? link_so(cx, object.to, out) : link_archive(cx, object.to, out)) &&
           constants_fill(e, kind, out);
}

/* Both lack a C interface: std::set_new_handler, llvm::install_bad_alloc_error_handler. */
typedef void End(void);
typedef void Told(void *user, const char *reason, bool diagnose);
End *set_new_handler(End *) __asm__("_ZSt15set_new_handlerPFvvE");
void install_bad_alloc(Told *, void *user) __asm__("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");

static void told(void *user, const char *reason, bool diagnose) {
    End *end;
    memcpy(&end, &user, sizeof end);
    end();
}

void codegen_no_memory(End *end) {
    void *user;
    memcpy(&user, &end, sizeof user);
    set_new_handler(end);
    install_bad_alloc(told, user);
}

bool codegen(Ctx *cx, const Jaxpr *j, EmitKind kind, const Output *out) {
    Target target;
    if (!target_from_options(cx, &target)) return false;
    timer_stage(cx->timer, "plan");
    Plan *p = plan(cx, j, target.vector_bytes);
    if (!p) return false;
    Emit *e = emit_open(cx, target);
    e->for_ld = kind == EMIT_so && !link_by_lld(cx);
    host_entry(p, e, j);
    bool ok = kind == EMIT_so || kind == EMIT_a ? linked(cx, e, j, kind, out) : emit_write(e, j, kind, out);
    if (kind == EMIT_obj) ok = ok && constants_fill(e, kind, out);
    emit_close(e);
    return ok;
}
