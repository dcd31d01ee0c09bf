/* Programs to differentiate:

       scalar FILE

   prints the program of FILE with one result, the sum of its first float result (of the real parts), then a line
   `# --grad=ARGS` that names its float inputs. The status is 3 if it has no such result or input. */
#include "passes/build.h"
#include "print.h"
#include "program.h"
#include <stdio.h>

static bool is_float(const Ctx *cx, Val v) {
    DtypeKind kind = dtype_info[val_array(cx, v)->dtype].kind;
    return kind == DK_FLOAT || kind == DK_COMPLEX;
}
/* The sum of the value's elements, as a real number. */
static Val sum(Builder *b, Val v) {
    int64_t axes[MAX_RANK];
    uint32_t rank = b_type(b, v)->rank;
    if (dtype_info[b_type(b, v)->dtype].kind == DK_COMPLEX) v = b_real(b, v);
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    return rank ? b_reduce(b, P_reduce_sum, v, rank, axes) : v;
}
static bool print(Ctx *cx, const Jaxpr *j) {
    Builder b = {.cx = cx, .span = j->span};
    Text text = {.arena = cx->arena};
    Val out = 0;
    for (uint32_t i = j->out.n; i-- > 0;)
        if (is_float(cx, j->out.at[i])) out = j->out.at[i];
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < j->in.n; i++)
        if (is_float(cx, j->in.at[i])) text_add(&text, "%s%u", inputs++ ? "," : "# --grad=", i);
    if (!out || !inputs) return false;
    text_put(&text, S("\n"));
    each(const Eqn, e, j->eqns) push(cx->arena, &b.eqns, *e);
    out = sum(&b, out);
    Text program = {.arena = cx->arena};
    jaxpr_print(cx, jaxpr_with(cx, j, b.eqns, (Vals){&out, 1}), &program);
    printf("%.*s\n%.*s", (int)program.n, program.at, (int)text.n, text.at);
    return true;
}
int main(int argc, char **argv) {
    if (argc != 2) return fputs("usage: scalar FILE\n", stderr), 2;
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = argv[1]};
    cx->options = &o;
    Jaxpr *j = read_program(cx, argv[1]);
    int status = !j ? 1 : print(cx, j) ? 0 : 3;
    diag_flush(cx->diags, stderr, false);
    arena_close(arena);
    return status;
}
