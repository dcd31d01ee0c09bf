#include "codegen.h"
#include "../options.h"
#include "../timer.h"
#include "host/constants.h"
#include "host/host.h"
#include "host/link.h"
#include "plan/report.h"
#include "report.h"

static bool library_write(Ctx *cx, Emit *e, Programs programs, const Output *out) {
    Objects objects;
    if (!emit_objects(e, programs, out, &objects)) return false;
    timer_stage(cx->timer, "link");
    return link_so(cx, &objects, out) && constants_fill(e, EMIT_so, out);
}
static bool archive_write(Ctx *cx, Emit *e, Programs programs, const Output *out) {
    Output object = {out->path, output_scratch(cx->arena, cx->diags, NULL)};
    if (!object.to || !emit_write(e, programs, EMIT_obj, &object)) return false;
    timer_stage(cx->timer, "link");
    return link_archive(cx, programs.at[0].name, object.to, out) && constants_fill(e, EMIT_a, out);
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

uint32_t codegen_words(Ctx *cx) {
    Targets targets;
    if (!targets_from_options(cx, &targets) || targets.at[0].device) return 0;
    return targets.n == 1 && targets.at[0].words ? 4 : 2;
}
/* What the programs use of the machine beyond its level. */
static bool uses_words(Ctx *cx, Programs programs) {
    for (uint32_t i = 0; i < programs.n; i++)
        if (jaxpr_uses(cx->arena, programs.at[i].j, P_dot_words)) return true;
    return false;
}

bool codegen_interface(Ctx *cx, const Program *p) {
    if (!cx->options->dlpack) return true;
    Signature s = signature_of(cx, p->name, p->j);
    for (uint32_t i = 0; i < s.out.n; i++)
        if (signature_computed(cx, &s, s.out.at[i]))
            return diag(cx->diags, val_info(cx, s.out.at[i])->span,
                        "--dlpack: the program computes an extent of output %u, for which no caller can have memory",
                        i);
    return true;
}

/* Dimensions are checked on the host, which does not read the device's memory. */
static bool extents_are_given(Plan *p, const Program *program) {
    if (!p->cx->options->device_pointers) return true;
    each(const Val, v, program->j->in)
        if (plan_register(p, *v))
            return diag(p->cx->diags, val_info(p->cx, *v)->span,
                        "--device-pointers: input '%.*s' is the extent of an array, which the host cannot read",
                        SF(val_name(p->cx, *v)));
    return true;
}
/* The functions that the program calls, then the program itself, for one target. */
static bool level_write(Ctx *cx, Emit *e, const Program *program, const Signature *s, Level *level) {
    Callees *callees = callees_of(cx, program, e->target);
    if (!callees_write(callees, e)) return false;
    timer_stage(cx->timer, "plan");
    level->plan = plan(callees, program->j, NULL);
    timer_stage(cx->timer, "build");
    if (!level->plan || !extents_are_given(level->plan, program)) return false;
    level->body = host_program(level->plan, e, program, s);
    if (cx->report) report_plan(cx->report, level->plan, str(program->name));
    return true;
}
static bool program_write(Ctx *cx, Emit *e, const Program *program) {
    Level levels[X86_LEVELS];
    Signature s = signature_of(cx, program->name, program->j);
    for (uint32_t i = 0; i < e->targets->n; i++) {
        em_target(e, i);
        if (!level_write(cx, e, program, &s, &levels[i])) return false;
    }
    em_target(e, 0);
    entry_write(e, program->j, levels);
    return true;
}
static bool module_write(Emit *e, Programs programs, EmitKind kind, const Output *out) {
    if (kind == EMIT_so) return library_write(e->cx, e, programs, out);
    if (kind == EMIT_a) return archive_write(e->cx, e, programs, out);
    return emit_write(e, programs, kind, out) && (kind != EMIT_obj || constants_fill(e, kind, out));
}

bool codegen(Ctx *cx, Programs programs, EmitKind kind, const Output *out) {
    Targets targets;
    if (!targets_from_options(cx, &targets)) return false;
    if (uses_words(cx, programs)) target_words(&targets.at[0]);
    cx->report = cx->options->report && kind == cx->options->emit ? report_new(cx->arena) : NULL;
    Emit *e = emit_open(cx, &targets);
    e->for_ld = kind == EMIT_so && !link_by_lld(cx);
    bool ok = true;
    for (uint32_t i = 0; i < programs.n && ok; i++) ok = program_write(cx, e, &programs.at[i]);
    ok = ok && module_write(e, programs, kind, out) && report_write(cx, programs);
    emit_close(e);
    return ok;
}
