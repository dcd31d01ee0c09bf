#include "../cost.h"
#include "dot_device.h"
#include "threads.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* wgmma: a warpgroup of 128 threads multiplies 64 rows by columns of the tile, 32 bytes of terms at a time, both of
   which are in shared memory. There are two: each has 64 rows, or if there are no more, a half of the columns. A
   descriptor says where: bits 0 to 13 the address, 16 to 29 and 32 to 45 two distances, all in units of 16 bytes, 62
   and 63 how pieces of a line are exchanged. (PTX ISA, asynchronous warpgroup level matrix instructions.)

   Where terms are beside each other, a line has those of a row; eight lines are `stride` apart from the next eight.
   Else a line has rows, `leading` apart from the next ones; and eight lines, of as many terms, `stride` apart from the
   next. LLVM has no intrinsic for it, so it is written as PTX.

   While the products of one turn are done those of the one before it end: its terms may be replaced only then. */

enum {
    GROUP_THREADS = 128,
    STEP_BYTES = 32,
    UNIT = 16,
    EIGHT = 8,
    SWIZZLE_AT = 62,
    GROUP_WORDS = 4, /* of the rows' terms of a step, if they are in registers: as mma.sync has them */
    MOST_OPERANDS = GROUP_WORDS + 1,
    MOST_VALUES = TILE_SUMS + 32
};

static uint32_t bytes_of(const Product *p) { return dtype_bytes(p->dot->as); }
/* Of a warpgroup. */
static uint32_t columns_of(const Product *p) {
    return p->dot->tile.rows == WARPGROUP_ROWS ? p->dot->tile.columns / 2 : p->dot->tile.columns;
}
static V shifted(const Product *p, V v, const char *op, int64_t by) { return em_bin(p->e, op, v, em_i64(p->e, by)); }
static int64_t layout(const Product *p, uint32_t side) {
    uint32_t line = staged_line(p, side);
    int64_t eight = EIGHT * line / UNIT, lines = (int64_t)p->dot->tile.terms * line / UNIT;
    int64_t mode = line == 128 ? 1 : line == 64 ? 2 : 3;
    int64_t leading = staged_along(p, side) ? 1 : lines;
    return (int64_t)((uint64_t)mode << SWIZZLE_AT | (uint64_t)eight << 32 | (uint64_t)leading << 16);
}
/* The matrix of a side whose first row or column is `first`, at a step of the terms. */
static V descriptor(const Product *p, uint32_t side, V slot, V first, uint32_t step) {
    Emit *e = p->e;
    V term = em_i64(e, (int64_t)step * STEP_BYTES / bytes_of(p)), zero = em_i64(e, 0);
    /* the place of the first element, whose pieces are not exchanged: the number of its line is a multiple of eight */
    V at = staged_at(p, side, slot, first, staged_along(p, side) ? zero : term);
    V shared = em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, SHARED_SPACE), at);
    V address = em_cast(e, "llvm.ptrtoint", e->i64, shared);
    if (staged_along(p, side)) address = em_add(p->e, address, em_i64(e, (int64_t)step * STEP_BYTES));
    V unit = shifted(p, shifted(p, address, "llvm.lshr", 4), "llvm.and", 0x3fff);
    return shifted(p, unit, "llvm.or", layout(p, side));
}

/* ---- the instruction */
static void put_registers(Text *t, uint32_t from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) text_put(t, str_format(t->arena, "%s$%u", i ? ", " : "{", from + i));
    text_put(t, S("}"));
}
/* Values that are results of an instruction, and unless `fresh` operands too; `more` other operands. */
typedef struct {
    uint32_t n, more;
    V *values;
    const V *operands;
    bool fresh;
} Registers;
/* `rows`: those of A are in four registers. */
static MlirAttribute instruction(const Product *p, const Registers *r, bool rows) {
    static const char *const types[NDTYPES] = {
        [DT_bf16] = "f32.bf16.bf16", [DT_f16] = "f32.f16.f16", [DT_i8] = "s32.s8.s8", [DT_u8] = "s32.u8.u8"};
    Emit *e = p->e;
    Text t = {.arena = e->arena};
    text_put(&t, str_format(e->arena, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s ", columns_of(p),
                            STEP_BYTES / bytes_of(p), types[p->dot->as]));
    uint32_t first = r->fresh ? r->n : 2 * r->n;
    put_registers(&t, 0, r->n);
    text_put(&t, S(", "));
    if (rows)
        put_registers(&t, first, GROUP_WORDS);
    else
        text_put(&t, str_format(e->arena, "$%u", first));
    text_put(&t, str_format(e->arena, ", $%u, %d", first + r->more - 1, !r->fresh)); /* added to what is there? */
    if (bytes_of(p) == 2) {
        text_put(&t, S(", 1, 1"));
        if (!rows) text_put(&t, str_format(e->arena, ", %d", !staged_along(p, 0)));
        text_put(&t, str_format(e->arena, ", %d", !staged_along(p, 1)));
    }
    text_put(&t, S(";"));
    return mlirStringAttrGet(e->mlir, mlirStringRefCreate(t.at, t.n));
}
static const char *letter_of(const Product *p, MlirType t) {
    return mlirTypeEqual(t, p->e->f32) ? "f" : mlirTypeEqual(t, p->e->i32) ? "r" : "l";
}
static MlirAttribute constraints(const Product *p, const Registers *r, const MlirType *types) {
    Emit *e = p->e;
    Text t = {.arena = e->arena};
    for (uint32_t i = 0; i < r->n; i++) text_put(&t, str_format(e->arena, "=%s,", letter_of(p, types[i])));
    for (uint32_t i = 0; i < r->n && !r->fresh; i++) text_put(&t, str_format(e->arena, "%u,", i));
    for (uint32_t i = 0; i < r->more; i++)
        text_put(&t, str_format(e->arena, "%s,", letter_of(p, mlirValueGetType(r->operands[i]))));
    text_put(&t, S("~{memory}"));
    return mlirStringAttrGet(e->mlir, mlirStringRefCreate(t.at, t.n));
}
static void write_ptx(const Product *p, MlirAttribute text, const Registers *r) {
    Emit *e = p->e;
    V o[MOST_VALUES + MOST_OPERANDS];
    MlirType types[MOST_VALUES] = {{NULL}};
    uint32_t own = r->fresh ? 0 : r->n;
    assert(r->n <= MOST_VALUES && r->more <= MOST_OPERANDS);
    for (uint32_t i = 0; i < r->n; i++)
        types[i] = r->fresh ? em_register_type(e, p->acc) : mlirValueGetType(o[i] = r->values[i]);
    for (uint32_t i = 0; i < r->more; i++) o[own + i] = r->operands[i];
    MlirType all = mlirLLVMStructTypeLiteralGet(e->mlir, r->n, types, false);
    Attr attrs[3] = {{"asm_string", text},
                     {"constraints", constraints(p, r, types)},
                     {"has_side_effects", mlirUnitAttrGet(e->mlir)}};
    V y = em_1(e, "llvm.inline_asm", all, own + r->more, o, 3, attrs);
    for (int64_t i = 0; i < r->n; i++) {
        Attr at = {"position", mlirDenseI64ArrayGet(e->mlir, 1, &i)};
        r->values[i] = em_1(e, "llvm.extractvalue", types[i], 1, &y, 1, &at);
    }
}
/* An instruction that values are operands and results of: they are in registers before it and read after it. */
static void order(const Product *p, const char *ptx, uint32_t n, V *values) {
    MlirStringRef text = mlirStringRefCreateFromCString(ptx);
    write_ptx(p, mlirStringAttrGet(p->e->mlir, text), &(Registers){.n = n, .values = values});
}
static void fence(const Product *p, uint32_t n, V *values) {
    if (n)
        order(p, "wgmma.fence.sync.aligned;", n, values);
    else
        threads_intrinsic(p->e, "llvm.nvvm.wgmma.fence.sync.aligned", no_type, 0, NULL);
}
static void commit(const Product *p) {
    threads_intrinsic(p->e, "llvm.nvvm.wgmma.commit_group.sync.aligned", no_type, 0, NULL);
}
static uint32_t steps_of(const Product *p) { return p->dot->tile.terms * bytes_of(p) / STEP_BYTES; }
void product_warpgroups(const Product *p, V slot, uint32_t n, V *sums) {
    Emit *e = p->e;
    bool halves = p->dot->tile.rows == WARPGROUP_ROWS; /* of the columns */
    V zero = em_i64(e, 0), pending = em_i64(e, 1), group = over(p, thread_number(p->k), GROUP_THREADS);
    V row = halves ? zero : times(p, group, WARPGROUP_ROWS), column = halves ? times(p, group, columns_of(p)) : zero;
    fence(p, n, sums);
    for (uint32_t step = 0; step < steps_of(p); step++) {
        V o[2] = {descriptor(p, 0, slot, row, step), descriptor(p, 1, slot, column, step)};
        Registers r = {n, 2, sums, o, false};
        write_ptx(p, instruction(p, &r, false), &r);
    }
    commit(p);
    threads_intrinsic(e, "llvm.nvvm.wgmma.wait_group.sync.aligned", no_type, 1, &pending);
}
void product_warpgroups_end(const Product *p, uint32_t since, uint32_t n, V *sums) {
    order(p, str_format(p->e->arena, "wgmma.wait_group.sync.aligned %u;", since).at, n, sums);
}

/* ---- all terms of a tile at once */
/* The matrix of a step of a turn, `apart` bytes from the one before, if `first` is that of the first step. */
static V further(const Product *p, uint32_t side, V first, int64_t apart, uint32_t turn, uint32_t step) {
    int64_t line = staged_line(p, side);
    int64_t bytes = staged_along(p, side) ? STEP_BYTES : STEP_BYTES / bytes_of(p) * line;
    return em_add(p->e, first, em_i64(p->e, (turn * apart + step * bytes) / UNIT));
}
void product_warpgroups_all(const Product *p, const V *rows, uint32_t nrows, bool fresh, uint32_t n, V *sums) {
    Emit *e = p->e;
    V values[MOST_VALUES], zero = em_i64(e, 0), group = over(p, thread_number(p->k), GROUP_THREADS), first[2];
    uint32_t steps = steps_of(p), tied = fresh ? 0 : n;
    assert(tied + nrows <= MOST_VALUES);
    if (!rows) first[0] = descriptor(p, 0, p->rows, times(p, group, WARPGROUP_ROWS), 0);
    first[1] = descriptor(p, 1, stage_slot(p, p->from), zero, 0);
    memcpy(values, sums, tied * sizeof *values);
    if (rows) memcpy(values + tied, rows, nrows * sizeof *values);
    fence(p, tied + nrows, values);
    memcpy(sums, values, tied * sizeof *values);
    for (uint32_t i = 0; i < p->dot->tile.turns * steps; i++) {
        V o[MOST_OPERANDS];
        uint32_t own = rows ? GROUP_WORDS : 1;
        if (rows)
            memcpy(o, values + tied + i * GROUP_WORDS, sizeof *o * GROUP_WORDS);
        else
            o[0] = further(p, 0, first[0], staged_bytes(p, 0), i / steps, i % steps);
        o[own] = further(p, 1, first[1], staged_bytes(p, 1), i / steps, i % steps);
        Registers r = {n, own + 1, sums, o, fresh && i == 0};
        write_ptx(p, instruction(p, &r, rows), &r);
    }
    commit(p);
}
