#include "lower.h"
#include <mlir-c/BuiltinAttributes.h>
#include <string.h>

/* Structured control flow as blocks and branches. A block is walked once, forwards: the operations after a loop move to
   the block that follows the loop, so that each operation moves once for each enclosing region. (MLIR's own conversion
   records every move to be able to undo it, and moves the whole rest of a block at each loop: quadratic in long
   blocks.) */

static MlirStringRef ref(const char *s) { return mlirStringRefCreateFromCString(s); }

typedef struct {
    MlirBlock to;
    uint32_t n;
    const V *args;
} Jump;
static MlirOperation branch(Emit *e, Jump j) {
    MlirOperationState s = mlirOperationStateGet(ref("llvm.br"), e->loc);
    mlirOperationStateAddOperands(&s, j.n, j.args);
    mlirOperationStateAddSuccessors(&s, 1, &j.to);
    MlirOperation op = mlirOperationCreate(&s);
    mlirBlockAppendOwnedOperation(e->block, op);
    return op;
}
/* Of a branch back to a loop's header. */
static void keep_rolled(Emit *e, MlirOperation back) {
    MlirAttribute rolled = mlirAttributeParseGet(e->mlir, ref("#llvm.loop_annotation<unroll = <disable = true>>"));
    mlirOperationSetAttributeByName(back, ref("loop_annotation"), rolled);
}
static void branch_if(Emit *e, V condition, Jump yes, Jump no) {
    int32_t segments[3] = {1, (int32_t)yes.n, (int32_t)no.n};
    MlirBlock to[2] = {yes.to, no.to};
    MlirNamedAttribute a = {mlirIdentifierGet(e->mlir, ref("operandSegmentSizes")),
                            mlirDenseI32ArrayGet(e->mlir, 3, segments)};
    MlirOperationState s = mlirOperationStateGet(ref("llvm.cond_br"), e->loc);
    mlirOperationStateAddOperands(&s, 1, &condition);
    mlirOperationStateAddOperands(&s, yes.n, yes.args);
    mlirOperationStateAddOperands(&s, no.n, no.args);
    mlirOperationStateAddSuccessors(&s, 2, to);
    mlirOperationStateAddAttributes(&s, 1, &a);
    mlirBlockAppendOwnedOperation(e->block, mlirOperationCreate(&s));
}

/* ---- pieces of operations */
static V *operands(Emit *e, MlirOperation op, uint32_t from, uint32_t *n) {
    *n = (uint32_t)mlirOperationGetNumOperands(op) - from;
    V *v = arena_new(e->arena, V, *n + 1);
    for (uint32_t i = 0; i < *n; i++) v[i] = mlirOperationGetOperand(op, from + i);
    return v;
}
static void replace_results(MlirOperation op, const V *by) {
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
        mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, i), by[i]);
}
/* Moves the single block of a region after `after`. */
static MlirBlock take_block(MlirOperation op, uint32_t region, MlirBlock after) {
    MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));
    mlirBlockDetach(b);
    mlirRegionInsertOwnedBlockAfter(mlirBlockGetParentRegion(after), after, b);
    return b;
}
static MlirBlock block_after(Emit *e, MlirBlock after, uint32_t n, const V *like) {
    MlirType *t = arena_new(e->arena, MlirType, n + 1);
    MlirLocation *locs = arena_new(e->arena, MlirLocation, n + 1);
    for (uint32_t i = 0; i < n; i++) t[i] = mlirValueGetType(like[i]), locs[i] = e->loc;
    MlirBlock b = mlirBlockCreate(n, t, locs);
    mlirRegionInsertOwnedBlockAfter(mlirBlockGetParentRegion(after), after, b);
    return b;
}
static V *arguments(Emit *e, MlirBlock b) {
    intptr_t n = mlirBlockGetNumArguments(b);
    V *v = arena_new(e->arena, V, n + 1);
    for (intptr_t i = 0; i < n; i++) v[i] = mlirBlockGetArgument(b, i);
    return v;
}
static MlirBlock lower_block(Emit *, MlirBlock);

/* Lowers a region's block and removes its terminator; e->block is its end, ready for a branch. */
static V *lower_region(Emit *e, MlirBlock b, uint32_t *n) {
    e->block = lower_block(e, b);
    MlirOperation yield = mlirBlockGetTerminator(e->block);
    V *v = operands(e, yield, 0, n);
    mlirOperationDestroy(yield);
    return v;
}

static void replace_arguments(MlirBlock b, uint32_t n, const V *by) {
    for (uint32_t i = n; i-- > 0;) {
        mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(b, i), by[i]);
        mlirBlockEraseArgument(b, i);
    }
}

/* ---- a rule per operation: lowers the operation at the end of `now`; returns the block for what follows */
typedef enum { NO_TURN, ONE_TURN, TURNS } Turns;
static Turns turns_of(const V *bounds) {
    int64_t lo, hi, step;
    if (!em_known(bounds[0], &lo) || !em_known(bounds[1], &hi)) return TURNS;
    if (lo >= hi) return NO_TURN;
    return em_known(bounds[2], &step) && (uint64_t)hi - (uint64_t)lo <= (uint64_t)step ? ONE_TURN : TURNS;
}
/* LLVM would find it out too, but its analyses of loops take longer than all else. */
static MlirBlock lower_once(Emit *e, MlirOperation op, uint32_t n, const V *values, MlirBlock now) {
    uint32_t yields;
    MlirBlock body = take_block(op, 0, now);
    replace_arguments(body, n, values);
    branch(e, (Jump){body, 0, NULL});
    V *next = lower_region(e, body, &yields);
    MlirBlock rest = block_after(e, e->block, 0, NULL);
    branch(e, (Jump){rest, 0, NULL});
    replace_results(op, next);
    return rest;
}
static MlirBlock lower_for(Emit *e, MlirOperation op, MlirBlock now) {
    uint32_t n, yields;
    V *in = operands(e, op, 0, &n), hi = in[1], step = in[2];
    Turns turns = turns_of(in);
    in[2] = in[0], n -= 2; /* the index, then the carried values */
    if (turns == NO_TURN) return replace_results(op, in + 3), now;
    if (turns == ONE_TURN) return lower_once(e, op, n, in + 2, now);
    MlirBlock header = block_after(e, now, n, in + 2), body = take_block(op, 0, header);
    V *args = arguments(e, header);
    replace_arguments(body, n, args);
    branch(e, (Jump){header, n, in + 2});
    V *next = lower_region(e, body, &yields);
    V *again = arena_new(e->arena, V, yields + 1);
    again[0] = em_bin(e, "llvm.add", args[0], step);
    memcpy(again + 1, next, yields * sizeof *next);
    MlirOperation back = branch(e, (Jump){header, n, again});
    if (!mlirAttributeIsNull(mlirOperationGetAttributeByName(op, ref("rolled")))) keep_rolled(e, back);
    MlirBlock rest = block_after(e, e->block, 0, NULL);
    e->block = header;
    branch_if(e, em_cmpi(e, "slt", args[0], hi), (Jump){body, 0, NULL}, (Jump){rest, 0, NULL});
    replace_results(op, args + 1);
    return rest;
}
static MlirBlock lower_if(Emit *e, MlirOperation op, MlirBlock now) {
    uint32_t n, m;
    V condition = mlirOperationGetOperand(op, 0);
    MlirBlock no = take_block(op, 1, now), yes = take_block(op, 0, now);
    branch_if(e, condition, (Jump){yes, 0, NULL}, (Jump){no, 0, NULL});
    V *a = lower_region(e, yes, &n);
    MlirBlock yes_end = e->block;
    V *b = lower_region(e, no, &m);
    MlirBlock rest = block_after(e, e->block, n, a);
    branch(e, (Jump){rest, m, b});
    e->block = yes_end;
    branch(e, (Jump){rest, n, a});
    replace_results(op, arguments(e, rest));
    return rest;
}
static MlirBlock lower_while(Emit *e, MlirOperation op, MlirBlock now) {
    uint32_t n, m, yields;
    V *init = operands(e, op, 0, &n);
    MlirBlock after = take_block(op, 1, now), before = take_block(op, 0, now);
    branch(e, (Jump){before, n, init});
    V *go = lower_region(e, before, &m); /* the condition, then the carried values */
    MlirBlock before_end = e->block;
    V *next = lower_region(e, after, &yields);
    branch(e, (Jump){before, yields, next});
    MlirBlock rest = block_after(e, e->block, 0, NULL);
    e->block = before_end;
    branch_if(e, go[0], (Jump){after, m - 1, go + 1}, (Jump){rest, 0, NULL});
    replace_results(op, go + 1);
    return rest;
}

typedef MlirBlock Rule(Emit *, MlirOperation, MlirBlock now);
static Rule *rule_of(MlirOperation op) {
    static const struct {
        const char *name;
        Rule *rule;
    } rules[] = {{"scf.for", lower_for}, {"scf.if", lower_if}, {"scf.while", lower_while}};
    if (mlirOperationGetNumRegions(op) == 0) return NULL;
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (mlirStringRefEqual(name, ref(rules[i].name))) return rules[i].rule;
    return NULL;
}
/* Lowers a block of a function; returns the one that its terminator ends up in. */
static MlirBlock lower_block(Emit *e, MlirBlock b) {
    MlirOperation last = mlirBlockGetTerminator(b), next;
    MlirBlock now = b;
    for (MlirOperation op = mlirBlockGetFirstOperation(b);; op = next) {
        next = mlirOperationGetNextInBlock(op);
        bool is_last = mlirOperationEqual(op, last);
        if (now.ptr != b.ptr) {
            mlirOperationRemoveFromParent(op);
            mlirBlockAppendOwnedOperation(now, op);
        }
        Rule *rule = rule_of(op);
        if (rule) {
            e->loc = mlirOperationGetLocation(op);
            e->block = now; /* its branch comes after operations that are still to be moved away */
            now = rule(e, op, now);
            mlirOperationDestroy(op);
        }
        if (is_last) return now;
    }
}

void emit_lower(Emit *e) {
    MlirBlock module = mlirModuleGetBody(e->module);
    for (MlirOperation op = mlirBlockGetFirstOperation(module); op.ptr; op = mlirOperationGetNextInBlock(op)) {
        if (mlirOperationGetNumRegions(op) == 0) continue;
        MlirBlock entry = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
        if (entry.ptr) lower_block(e, entry);
    }
    e->block = module;
}
