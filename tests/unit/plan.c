/* Plans: steps, their loops and what the target decides. Links neither LLVM nor MLIR. */
#include "codegen/eval/record.h"
#include "codegen/plan/call.h"
#include "codegen/plan/dot.h"
#include "options.h"
#include "parse/parse.h"
#include "typecheck/check.h"
#include <criterion/criterion.h>

enum { V2 = 1, V3, V4 };
static Arena *arena;
static Ctx *cx;
static Options options;
static void open_context(void) {
    arena = arena_open();
    cx = ctx_new(arena);
    options = (Options){.opt = 2, .name = "f"};
    cx->options = &options;
}
static void close_context(void) { arena_close(arena); }
TestSuite(plan, .init = open_context, .fini = close_context);

static Plan *planned(const char *text, const Target *target) {
    Jaxpr *j = parse(cx, diags_source(cx->diags, "test", str(text)), NULL);
    cr_assert(j && check(cx, j));
    j = passes_lower(cx, j);
    cr_assert(j && supported(cx, j));
    Callees *callees = callees_of(cx, &(Program){"f", j}, target);
    each(Callee *, c, callees->all) {
        Plan *p = callee_plan(callees, *c);
        cr_assert(p);
        (*c)->workspace = p->workspace;
    }
    Plan *p = plan(callees, j, NULL);
    cr_assert(p);
    return p;
}
/* The step of the body that has this number, counted from 0. */
static Step *step(const Plan *p, uint32_t i) {
    cr_assert(i < p->top->steps.n);
    return p->top->steps.at[i];
}

Test(plan, elementwise_equations_are_one_step) {
    Plan *p = planned("{ lambda ; a:f32[1000] b:f32[1000]. let c:f32[1000] = mul a b; d:f32[1000] = exp c;\n"
                      "  e:f32[1000] = add d a in (e,) }",
                      &x86_levels[V3]);
    cr_assert_eq(p->top->steps.n, 1);
    const Step *s = step(p, 0);
    cr_assert_eq(s->kind, STEP_LOOPS);
    cr_assert_eq(s->stores.n, 1);
    cr_assert_eq(s->stores.at[0].buf->kind, BUF_OUT);
    cr_assert_eq(s->nkept, 1);
    cr_assert_eq(s->lane, s->kept[0]);
    cr_assert_eq(p->workspace, 0);
}

/* A sum of rows and what is divided by it are two stages of one step; the exponentials are kept in the result's memory,
   or in a row where its elements are smaller. */
Test(plan, softmax_is_one_step_of_stages) {
    static const struct {
        const char *last;
        int64_t row_bytes;
    } want[] = {{"i:f32[64,100] = div e h in (i,) }", 0},
                {"j:f32[64,100] = div e h; i:bf16[64,100] = convert_element_type[new_dtype=bfloat16 weak_type=False] j "
                 "in (i,) }",
                 400}};
    for (uint32_t i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{ lambda ; a:f32[64,100]. let b:f32[64] = reduce_max[axes=(1,)] a\n"
                 "  c:f32[64,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(64,1)] b\n"
                 "  d:f32[64,100] = sub a c; e:f32[64,100] = exp d; g:f32[64] = reduce_sum[axes=(1,)] e\n"
                 "  h:f32[64,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(64,1)] g\n  %s",
                 want[i].last);
        Plan *p = planned(text, &x86_levels[V3]);
        cr_assert_eq(p->top->steps.n, 1);
        const Step *s = step(p, 0);
        cr_assert_eq(s->levels, 3);
        cr_assert_eq(s->nreductions, 2);
        cr_assert_eq(s->row_bytes, want[i].row_bytes);
        cr_assert_eq(p->workspace, 0);
        cr_assert_eq(s->lane, s->red[0]);
        cr_assert_eq(s->units, 64);
    }
}

/* The hyperbolic tangents are of use to the stage after the sums alone, which computes them. */
Test(plan, what_one_later_stage_evaluates_is_not_stored) {
    Plan *p = planned("{ lambda ; a:f32[64,100] b:f32[64,100]. let c:f32[64] = reduce_sum[axes=(1,)] a\n"
                      "  d:f32[64,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(64,1)] c\n"
                      "  e:f32[64,100] = tanh b; f:f32[64,100] = mul a d; g:f32[64,100] = mul e f in (g,) }",
                      &x86_levels[V3]);
    cr_assert_eq(p->top->steps.n, 1);
    cr_assert_eq(step(p, 0)->levels, 2);
    cr_assert_eq(step(p, 0)->stores.n, 1);
}

/* 1003 = 31 · 32 + 11: at AVX2 32 lanes at once, the rest in one masked vector of 16; without masks one by one. */
Test(plan, the_target_decides_widths) {
    const char *text = "{ lambda ; a:f32[1003] b:f32[1003]. let c:f32[1003] = add a b in (c,) }";
    static const struct {
        uint32_t level, main, tail;
    } want[] = {{V2, 16, 1}, {V3, 32, 16}, {V4, 64, 64}};
    for (uint32_t i = 0; i < 3; i++) {
        const Step *s = step(planned(text, &x86_levels[want[i].level]), 0);
        cr_assert_eq(s->widths.main, want[i].main);
        cr_assert_eq(s->widths.tail, want[i].tail);
        cr_assert_eq(s->block, 256);
        cr_assert_eq(s->units, 4);
    }
}

Test(plan, a_product_has_a_tile_for_the_registers) {
    const char *text = "{ lambda ; a:f32[128,128] b:f32[128,128]. let c:f32[128,128] = dot_general["
                       "dimension_numbers=(([1], [0]), ([], []))] a b; d:f32[128,128] = tanh c in (d,) }";
    Plan *p = planned(text, &x86_levels[V3]);
    cr_assert_eq(p->top->steps.n, 1);
    const Step *s = step(p, 0);
    cr_assert_eq(s->kind, STEP_DOT);
    cr_assert_eq(s->members.n, 2);
    cr_assert_eq(s->dot->mr, 6);
    cr_assert_eq(s->dot->w, 16);
    s = step(planned(text, &x86_levels[V4]), 0);
    cr_assert_eq(s->dot->mr, 8);
    cr_assert_eq(s->dot->w, 32);
}

/* The next value of the first is written over the current one; the second is read elsewhere than it is written. */
/* The product that is the program's first step on a GPU. */
static const DeviceDot *first_product(const char *text) {
    Target gpu;
    cr_assert(nvptx_target(cx, &gpu));
    return step(planned(text, &gpu), 0)->dot->device;
}
/* What multiplies a product of x and y there. */
static const DeviceDot *device_product(const char *x, const char *y, const char *z, const char *contracted) {
    char text[256];
    snprintf(text, sizeof text,
             "{ lambda ; a:%s b:%s. let c:%s = dot_general[dimension_numbers=(([%s]), ([], []))"
             " preferred_element_type=%.*s] a b in (c,) }",
             x, y, z, contracted, (int)strcspn(z, "["), z);
    return first_product(text);
}
Test(plan, a_product_on_a_gpu_is_for_tensor_cores_if_these_have_its_type) {
    const DeviceDot *d = device_product("bf16[2048,2048]", "bf16[2048,2048]", "bf16[2048,2048]", "1], [0");
    cr_assert_eq(d->form, DOT_MMA);
    cr_assert_eq(d->as, DT_bf16);
    cr_assert(d->tile.rows == 128 && d->tile.columns == 256 && d->tile.terms == 32);
    cr_assert(d->side[0].plain && d->side[0].along_terms && d->side[1].plain && !d->side[1].along_terms);
    cr_assert_eq(device_product("f8_e4m3fn[64,64]", "i4[64,64]", "f32[64,64]", "1], [0")->as, DT_bf16);
    cr_assert_eq(device_product("f64[64,64]", "f64[64,64]", "f64[64,64]", "1], [0")->form, DOT_MMA_F64);
    cr_assert_eq(device_product("f32[64,64]", "bf16[64,64]", "f32[64,64]", "1], [0")->form, DOT_FMA);
    cr_assert_eq(device_product("i8[64,64]", "i8[64,64]", "i64[64,64]", "1], [0")->form, DOT_FMA);
}
Test(plan, long_sums_of_few_tiles_on_a_gpu_are_done_in_parts) {
    const DeviceDot *d = device_product("f32[32,32768]", "f32[32768,32]", "f32[32,32]", "1], [0");
    cr_assert_eq(d->parts, 128);
    cr_assert_eq(d->part_turns * d->tile.terms, 256);
    cr_assert_eq(d->block, 0);
    d = device_product("f32[2048,16384]", "f32[16384,2048]", "f32[2048,2048]", "1], [0");
    cr_assert_eq(d->parts, 1);
    cr_assert_eq(d->block, 4096);
}
/* 16 bytes at multiples of 16, of what is contiguous; tensor cores read bytes along the terms alone. */
Test(plan, operands_of_a_product_are_copied_in_pieces) {
    const DeviceDot *d = device_product("f16[64,36]", "f16[36,64]", "f16[64,64]", "1], [0");
    cr_assert(!d->side[0].plain && d->side[1].plain);
    d = device_product("i8[64,64]", "i8[64,64]", "i32[64,64]", "1], [0");
    cr_assert(d->side[0].plain && !d->side[1].plain);
    d = device_product("f32[100,100]", "f32[100,100]", "f32[100,100]", "0], [1");
    cr_assert(d->side[0].plain && !d->side[0].along_terms && d->side[1].plain && d->side[1].along_terms);
}
static bool is_axis(BoxAxis a, Dim extent, Dim stride, uint32_t box) {
    return a.extent == extent && a.stride == stride && a.box == box;
}
/* On sm_90a what is copied in pieces comes as boxes; their lines are 128 bytes, or fewer if the tile has fewer. */
Test(plan, operands_of_a_product_are_boxes) {
    options.march = "sm_90a";
    const DeviceDot *d = device_product("bf16[2000,2048]", "bf16[2048,1024]", "f32[2000,1024]", "1], [0");
    cr_assert(d->boxed && d->tile.terms == 64 && d->tile.turns == 3);
    cr_assert(is_axis(d->side[0].box.axis[0], 2048, 1, 64) && is_axis(d->side[0].box.axis[1], 2000, 2048, 128));
    cr_assert(is_axis(d->side[1].box.axis[0], 1024, 1, 64) && is_axis(d->side[1].box.axis[1], 2048, 1024, 64));
    d = first_product("{ lambda ; a:f16[2,300,3,40] b:f16[2,100,3,40]. let c:f32[2,3,300,100] = dot_general["
                      "dimension_numbers=(([3], [3]), ([0, 2], [0, 2])) preferred_element_type=float32] a b in (c,) }");
    const DotBox *b = &d->side[0].box;
    cr_assert(d->boxed && b->rank == 4 && is_axis(b->axis[1], 300, 120, d->tile.rows));
    cr_assert(is_axis(b->axis[2], 2, 36000, 1) && is_axis(b->axis[3], 3, 40, 1));
    cr_assert(device_product("i8[64,64]", "i8[64,64]", "i32[64,64]", "1], [1")->boxed);
    cr_assert(!device_product("i8[64,64]", "i8[64,64]", "i32[64,64]", "1], [0")->boxed);
    cr_assert(!device_product("f16[64,36]", "f16[36,64]", "f16[64,64]", "1], [0")->boxed);
    cr_assert(!device_product("f16[32,64]", "f16[64,64]", "f16[32,64]", "1], [0")->boxed);
}

Test(plan, carries_of_a_scan) {
    Plan *p = planned(
        "{ lambda ; a:f32[500] b:f32[500]. let c:f32[500] d:f32[500] = scan[_split_transpose=False\n"
        "    jaxpr={ lambda ; e:f32[500] g:f32[500]. let h:f32[500] = sin e; i:f32[500] = rev[dimensions=(0,)] g\n"
        "    k:f32[500] = mul i h in (h, k) }\n"
        "    length=10 linear=(False, False) num_carry=2 num_consts=0 reverse=False unroll=1] a b in (c, d) }",
        &x86_levels[V3]);
    const Step *s = step(p, 0);
    cr_assert_eq(s->kind, STEP_SCAN);
    cr_assert_eq(s->ncarries, 2);
    cr_assert_eq(s->carries[0].kind, CARRY_IN_PLACE);
    cr_assert_eq(s->carries[1].kind, CARRY_SWAP);
}

enum { MOST_READS = 16 };
typedef struct {
    Val v[MOST_READS];
    Ix address[MOST_READS];
    uint32_t n;
} Reads;
static void seen(void *user, Val v, const Ix *index, Ix address) {
    Reads *r = user;
    if (!v) return;
    cr_assert_lt(r->n, MOST_READS);
    r->v[r->n] = v, r->address[r->n++] = address;
}
/* Nothing moves: what a transposed slice reads is an address in the array itself. */
Test(plan, what_an_index_operation_reads_is_recorded) {
    Plan *p = planned("{ lambda ; a:f32[10,20]. let b:f32[4,20] = slice[limit_indices=(7, 20) start_indices=(3, 0)\n"
                      "    strides=None] a; c:f32[20,4] = transpose[permutation=(1, 0)] b in (c,) }",
                      &x86_levels[V3]);
    const Jaxpr *j = p->top->j;
    Ix index[2] = {ix_atom(p->ix, atom_loop(p->ix, 20)), ix_atom(p->ix, atom_loop(p->ix, 4))};
    Reads r = {.n = 0};
    eval_value(record(p, NULL, seen, &r), j->out.at[0], index);
    cr_assert_eq(r.n, 1);
    cr_assert_eq(r.v[0], j->in.at[0]);
    Ix want = ix_add(p->ix, ix_scale(p->ix, ix_add(p->ix, ix_dim(p->ix, 3), index[1]), 20), index[0]);
    cr_assert_eq(r.address[0], want);
}

/* Neither the indices nor their entries are stored. */
Test(plan, entries_of_indices_are_read_where_they_are_computed) {
    Plan *p = planned("{ lambda ; a:f32[50,60] b:f32[5000] c:f32[5000]. let\n"
                      "  d:i32[5000] = convert_element_type[new_dtype=int32 weak_type=False] b\n"
                      "  e:i32[5000] = convert_element_type[new_dtype=int32 weak_type=False] c\n"
                      "  f:i32[5000,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(5000, 1)] d\n"
                      "  g:i32[5000,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(5000, 1)] e\n"
                      "  h:i32[5000,2] = concatenate[dimension=1] f g\n"
                      "  i:f32[5000] = gather[dimension_numbers=GatherDimensionNumbers(offset_dims=(), "
                      "collapsed_slice_dims=(0, 1), start_index_map=(0, 1)) fill_value=None indices_are_sorted=False "
                      "mode=GatherScatterMode.CLIP slice_sizes=(1, 1) unique_indices=False] a h\n"
                      "  j:f32[5000] = mul i b in (j,) }",
                      &x86_levels[V3]);
    cr_assert_eq(p->top->steps.n, 1);
    cr_assert_eq(p->workspace, 0);
}

static uint32_t steps_of_cut(const char *limits, uint32_t columns) {
    char text[512];
    snprintf(text, sizeof text,
             "{ lambda ; a:f32[60,50,40]. let b:f32[50,60,40] = transpose[permutation=(1, 0, 2)] a\n"
             "  c:f32[50,2400] = reshape[dimensions=None new_sizes=(50,2400)] b\n"
             "  d:f32[50,%u] = slice[%s strides=None] c in (d,) }",
             columns, limits);
    return planned(text, &x86_levels[V3])->top->steps.n;
}
/* Only a cut between the rows that the reshape merges, of most of them, is made of a copy. */
Test(plan, what_is_cut_from_merged_axes_is_laid_in_memory) {
    cr_assert_eq(steps_of_cut("limit_indices=(50, 2397) start_indices=(0, 5)", 2392), 2);
    cr_assert_eq(steps_of_cut("limit_indices=(50, 2397) start_indices=(0, 0)", 2397), 2);
    cr_assert_eq(steps_of_cut("limit_indices=(50, 2360) start_indices=(0, 40)", 2320), 1);
    cr_assert_eq(steps_of_cut("limit_indices=(50, 105) start_indices=(0, 5)", 100), 1);
}

/* The predicate that is tested before the loops, 0 if none is; argument: p. */
static Val unswitched(const char *heavy, const char *predicate, Val *argument) {
    char text[512];
    snprintf(text, sizeof text,
             "{ lambda ; p:bool[] a:f32[1000]. let g:bool[1000] = gt a 0.0:f32[]; q:bool[] = reduce_or[axes=(0,)] g\n"
             "  b:f32[1000] = %s a; c:f32[1000] = select_n %s a b in (c, q) }",
             heavy, predicate);
    Plan *p = planned(text, &x86_levels[V3]);
    *argument = p->top->j->in.at[0];
    Val any = 0;
    each(Step *, at, p->top->steps) any = (*at)->unswitched ? (*at)->unswitched : any;
    return any;
}
Test(plan, a_scalar_predicate_is_tested_before_the_loops) {
    Val p;
    cr_assert_eq(unswitched("exp", "p", &p), p);
    cr_assert_eq(unswitched("neg", "p", &p), p);
    cr_assert_eq(unswitched("exp", "q", &p), 0); /* the step itself computes q */
}

/* Rows are reduced after what is read across edges is stored, unless it is large or padded in a loop over rows. */
static uint32_t steps_of_edges(bool padded, uint32_t m, uint32_t n, const char *axes, const char *result) {
    char text[1024], moved[512];
    snprintf(moved, sizeof moved,
             padded ? "b:f32[%u,%u] = pad[padding_config=((0, 0, 0), (1, -1, 0))] a 0.0:f32[]\n"
                    : "f:f32[%u,1] = slice[limit_indices=(%u, %u) start_indices=(0, %u) strides=None] a\n"
                      "  g:f32[%u,%u] = slice[limit_indices=(%u, %u) start_indices=(0, 0) strides=None] a\n"
                      "  b:f32[%u,%u] = concatenate[dimension=1] f g\n",
             m, padded ? n : m, n, n - 1, m, n - 1, m, n - 1, m, n);
    snprintf(text, sizeof text,
             "{ lambda ; a:f32[%u,%u]. let %s  c:f32[%u,%u] = exp b; d:%s = reduce_sum[axes=%s] c in (d,) }", m, n,
             moved, m, n, result, axes);
    return planned(text, &x86_levels[V3])->top->steps.n;
}
Test(plan, rows_are_reduced_apart_from_edges) {
    cr_assert_eq(steps_of_edges(false, 9, 200, "(0, 1)", "f32[]"), 2);
    cr_assert_eq(steps_of_edges(false, 9, 200, "(1,)", "f32[9]"), 2);
    cr_assert_eq(steps_of_edges(false, 9, 200, "(0,)", "f32[200]"), 1);
    cr_assert_eq(steps_of_edges(true, 9, 200, "(0, 1)", "f32[]"), 2);
    cr_assert_eq(steps_of_edges(true, 9, 200, "(1,)", "f32[9]"), 1);
    cr_assert_eq(steps_of_edges(true, 9000, 200, "(0, 1)", "f32[]"), 1);
}

/* Rolled rows: in vectors from edge to edge if a loop would have masks that it computes, as one vector if the masks are
   known. */
static uint32_t ends_of_rows(uint32_t lanes) {
    char text[512];
    snprintf(text, sizeof text,
             "{ lambda ; a:f32[9,%u]. let b:f32[9,1] = slice[limit_indices=(9, %u) start_indices=(0, %u) strides=None] "
             "a\n"
             "  c:f32[9,%u] = slice[limit_indices=(9, %u) start_indices=(0, 0) strides=None] a\n"
             "  d:f32[9,%u] = concatenate[dimension=1] b c; e:f32[9,%u] = add d a in (e,) }",
             lanes, lanes, lanes - 1, lanes - 1, lanes - 1, lanes, lanes);
    return step(planned(text, &x86_levels[V3]), 0)->nends;
}
Test(plan, rows_are_cut_at_edges) {
    cr_assert_eq(ends_of_rows(32), 0);
    cr_assert_eq(ends_of_rows(64), 3);
    cr_assert_eq(ends_of_rows(128), 3);
    cr_assert_eq(ends_of_rows(160), 0);
}

/* A walk through a table: the place differs between the lanes, and what is stacked lies where the loop's turn says. */
Test(plan, a_program_of_elements_reads_and_stacks_arrays) {
    Plan *p =
        planned("{ lambda ; a:f32[40] b:i32[100]. let c:i32[100] d:f32[9,100] = scan[\n"
                "    jaxpr={ lambda ; e:f32[40] g:i32[100]. let h:i32[100,1] = reshape[dimensions=None\n"
                "      new_sizes=(100,1)] g; i:f32[100] = gather[dimension_numbers=GatherDimensionNumbers(\n"
                "      offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,), operand_batching_dims=(),\n"
                "      start_indices_batching_dims=()) fill_value=None indices_are_sorted=False\n"
                "      mode=GatherScatterMode.CLIP slice_sizes=(1,) unique_indices=False] e h\n"
                "      j:i32[100] = convert_element_type[new_dtype=int32 weak_type=False] i in (j, i) }\n"
                "    length=9 linear=(False, False) num_carry=1 num_consts=1 reverse=False unroll=1] a b\n"
                "  in (c, d) }",
                &x86_levels[V3]);
    cr_assert_eq(p->top->steps.n, 1);
    Step *s = step(p, 0);
    const Jaxpr *j = p->top->j;
    cr_assert_eq(s->kind, STEP_LOOPS);
    Reads r = {.n = 0};
    step_reads(p, s, seen, &r);
    uint32_t at = 0;
    while (at < r.n && r.v[at] != j->in.at[0]) at++;
    cr_assert_lt(at, r.n);
    cr_assert(ix_uses(p->ix, r.address[at], s->lane));
    cr_assert(ix_at(p->ix, r.address[at])->data);
    Ix index[MAX_RANK];
    cr_assert(plan_stacks(p, s, j->out.at[1]));
    step_at(p, s, j->out.at[1], index);
    cr_assert_eq(index[0], plan_info(p, j->out.at[1])->turn);
    cr_assert(!ix_uses(p->ix, index[0], s->lane));
}

/* Its workspace is a part of the caller's. */
Test(plan, buffers_that_are_never_live_together_share_memory) {
    Plan *p = planned("{ lambda ; a:f32[1000]. let b:f32[1000] = cumsum[axis=0 reverse=False] a\n"
                      "  c:f32[1000] = cumsum[axis=0 reverse=False] b; d:f32[1000] = cumsum[axis=0 reverse=False] c\n"
                      "  e:f32[1000] = cumsum[axis=0 reverse=False] d in (e,) }",
                      &x86_levels[V3]);
    cr_assert_eq(p->top->steps.n, 4);
    cr_assert_eq(p->workspace, 2 * 4032);
}
