#include "../cost.h"
#include "dot_device.h"
#include "threads.h"
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

enum { GROUP_THREADS = 128, STEP_BYTES = 32, UNIT = 16, EIGHT = 8, SWIZZLE_AT = 62, MOST_OPERANDS = 2 };

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
    /* the place of the first element, whose pieces are not exchanged: it is in a line whose number is a multiple of eight */
    V at = staged_at(p, side, slot, first, staged_along(p, side) ? zero : term);
    V shared = em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, SHARED_SPACE), at);
    V address = em_cast(e, "llvm.ptrtoint", e->i64, shared);
    if (staged_along(p, side)) address = em_add(p->e, address, em_i64(e, (int64_t)step * STEP_BYTES));
    V unit = shifted(p, shifted(p, address, "llvm.lshr", 4), "llvm.and", 0x3fff);
    return shifted(p, unit, "llvm.or", layout(p, side));
}

/* ---- the instruction */
static void put_registers(Text *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) text_put(t, str_format(t->arena, "%s$%u", i ? ", " : "{", i));
    text_put(t, S("}"));
}
static MlirAttribute instruction(const Product *p, uint32_t n) {
    static const char *const types[NDTYPES] = {
        [DT_bf16] = "f32.bf16.bf16", [DT_f16] = "f32.f16.f16", [DT_i8] = "s32.s8.s8", [DT_u8] = "s32.u8.u8"};
    Emit *e = p->e;
    Text t = {.arena = e->arena};
    text_put(&t, str_format(e->arena, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s ", columns_of(p),
                            STEP_BYTES / bytes_of(p), types[p->dot->as]));
    put_registers(&t, n);
    text_put(&t, str_format(e->arena, ", $%u, $%u, 1", 2 * n, 2 * n + 1)); /* added to what is there */
    if (bytes_of(p) == 2)
        text_put(&t, str_format(e->arena, ", 1, 1, %d, %d", !staged_along(p, 0), !staged_along(p, 1)));
    text_put(&t, S(";"));
    return mlirStringAttrGet(e->mlir, mlirStringRefCreate(t.at, t.n));
}
/* The registers of the sums are results and operands, before `more` others of 64 bits. */
static MlirAttribute constraints(const Product *p, uint32_t n, uint32_t more) {
    Emit *e = p->e;
    Text t = {.arena = e->arena};
    for (uint32_t i = 0; i < n; i++) text_put(&t, str(p->acc == DT_f32 ? "=f," : "=r,"));
    for (uint32_t i = 0; i < n; i++) text_put(&t, str_format(e->arena, "%u,", i));
    for (uint32_t i = 0; i < more; i++) text_put(&t, S("l,"));
    text_put(&t, S("~{memory}"));
    return mlirStringAttrGet(e->mlir, mlirStringRefCreate(t.at, t.n));
}
static void write_ptx(const Product *p, MlirAttribute text, uint32_t more, const V *operands, uint32_t n, V *sums) {
    Emit *e = p->e;
    V o[TILE_SUMS + MOST_OPERANDS];
    MlirType types[TILE_SUMS] = {{NULL}};
    for (uint32_t i = 0; i < n; i++) types[i] = mlirValueGetType(o[i] = sums[i]);
    for (uint32_t i = 0; i < more; i++) o[n + i] = operands[i];
    MlirType all = mlirLLVMStructTypeLiteralGet(e->mlir, n, types, false);
    Attr attrs[3] = {
        {"asm_string", text}, {"constraints", constraints(p, n, more)}, {"has_side_effects", mlirUnitAttrGet(e->mlir)}};
    V r = em_1(e, "llvm.inline_asm", all, n + more, o, 3, attrs);
    for (int64_t i = 0; i < n; i++) {
        Attr at = {"position", mlirDenseI64ArrayGet(e->mlir, 1, &i)};
        sums[i] = em_1(e, "llvm.extractvalue", types[i], 1, &r, 1, &at);
    }
}
/* An instruction that the sums are operands and results of: they are in registers before it and read after it. */
static void order_sums(const Product *p, const char *ptx, uint32_t n, V *sums) {
    MlirStringRef text = mlirStringRefCreateFromCString(ptx);
    write_ptx(p, mlirStringAttrGet(p->e->mlir, text), 0, NULL, n, sums);
}
void product_warpgroups(const Product *p, V slot, uint32_t n, V *sums) {
    Emit *e = p->e;
    bool halves = p->dot->tile.rows == WARPGROUP_ROWS; /* of the columns */
    V zero = em_i64(e, 0), pending = em_i64(e, 1), group = over(p, thread_number(p->k), GROUP_THREADS);
    V row = halves ? zero : times(p, group, WARPGROUP_ROWS), column = halves ? times(p, group, columns_of(p)) : zero;
    order_sums(p, "wgmma.fence.sync.aligned;", n, sums);
    for (uint32_t step = 0; step < p->dot->tile.terms * bytes_of(p) / STEP_BYTES; step++) {
        V o[MOST_OPERANDS] = {descriptor(p, 0, slot, row, step), descriptor(p, 1, slot, column, step)};
        write_ptx(p, instruction(p, n), MOST_OPERANDS, o, n, sums);
    }
    threads_intrinsic(e, "llvm.nvvm.wgmma.commit_group.sync.aligned", no_type, 0, NULL);
    threads_intrinsic(e, "llvm.nvvm.wgmma.wait_group.sync.aligned", no_type, 1, &pending);
}
void product_warpgroups_end(const Product *p, uint32_t n, V *sums) {
    order_sums(p, "wgmma.wait_group.sync.aligned 0;", n, sums);
}
