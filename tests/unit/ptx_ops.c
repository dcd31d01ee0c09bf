/* Every operation of the interpreter at every type: ops.txt says what it gives for edge values. A lane for each case;
   once more under a predicate that holds for the odd lanes. */
#include "tests/gpu/ops.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_LETTERS = 8, MAX_TEXT = 8192, MAX_LINE = 512, ULPS = 2, MAX_FAILURES = 20 };
typedef struct {
    char name[64];
    char letters[MAX_LETTERS + 1]; /* without | */
    uint32_t results, n;           /* letters of results, cases */
    bool pair, about;
    uint64_t values[LANES][MAX_LETTERS]; /* operands, then results */
} Group;
static const char *path = "tests/gpu/ops.txt";
static uint32_t failures;
#define NAN_F64 0x7ff8000000000000

static const char *type_of(char c) { return c == 'h' ? "b16" : c == 'w' || c == 'p' ? "b32" : "b64"; }
static const char *register_of(char c) { return c == 'h' ? "%h" : c == 'w' || c == 'p' ? "%w" : "%x"; }
/* Loads each operand of a lane, runs the operation, stores the results. The last operand of NAME#N is the immediate
   N. */
static const char *kernel_of(const Group *g) {
    static char text[MAX_TEXT];
    uint32_t n = (uint32_t)strlen(g->letters);
    const char *immediate = strchr(g->name, '#');
    FILE *f = fmemopen(text, sizeof text, "w");
    fprintf(f,
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u32 odd) {\n"
            ".reg .pred %%p<9>; .reg .pred %%q; .reg .b16 %%h<9>; .reg .b32 %%w<9>; .reg .b32 %%t<9>; .reg .b64 "
            "%%x<9>; .reg .b64 %%a;\n"
            "ld.param.u64 %%a, [data]; mov.u32 %%t1, %%laneid; mad.wide.u32 %%a, %%t1, %d, %%a;\n"
            "ld.param.u32 %%t2, [odd]; or.b32 %%t3, %%t1, %%t2; and.b32 %%t3, %%t3, 1; setp.ne.b32 %%q, %%t3, 0;\n",
            8 * MAX_LETTERS);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = 8 * (k < g->results ? n - g->results + k : k - g->results);
        fprintf(f, "ld.global.%s %s%u, [%%a+%u];\n", type_of(g->letters[k]), register_of(g->letters[k]), k, at);
        if (g->letters[k] == 'p') fprintf(f, "setp.ne.b32 %%p%u, %%w%u, 0;\n", k, k);
    }
    fprintf(f, "@%%q %.*s ", immediate ? (int)(immediate - g->name) : (int)sizeof g->name, g->name);
    for (uint32_t k = 0; k < n; k++)
        fprintf(f, "%s%s%u",
                k == 0              ? ""
                : k == 1 && g->pair ? "|"
                                    : ", ",
                g->letters[k] == 'p' ? "%p" : register_of(g->letters[k]), k);
    if (immediate) fprintf(f, ", %ld", strtol(immediate + 1, NULL, 16));
    fprintf(f, ";\n");
    for (uint32_t k = 0; k < g->results; k++) {
        if (g->letters[k] == 'p') fprintf(f, "selp.b32 %%w%u, 1, 0, %%p%u;\n", k, k);
        fprintf(f, "st.global.%s [%%a+%u], %s%u;\n", type_of(g->letters[k]), 8 * (n - g->results + k),
                register_of(g->letters[k]), k);
    }
    fprintf(f, "ret; }\n");
    fclose(f);
    return text;
}
static bool near(const Group *g, uint32_t k, uint64_t got, uint64_t want) {
    uint64_t apart = got > want ? got - want : want - got;
    bool pairs = strstr(g->name, "x2");
    if (want == NAN_F64) return (got & NAN_F64) == NAN_F64; /* of either sign */
    if (!g->about) return got == want;
    return apart <= ULPS || (pairs && apart % 65536 <= ULPS && apart / 65536 <= ULPS);
}
static void compare(const Group *g, const uint64_t (*data)[MAX_LETTERS], bool odd) {
    uint32_t n = (uint32_t)strlen(g->letters);
    for (uint32_t l = 0; l < g->n; l++)
        for (uint32_t k = n - g->results; k < n; k++) {
            uint64_t want = odd && l % 2 == 0 ? (g->letters[k - (n - g->results)] == 'p' ? 1 : 0x5a) : g->values[l][k];
            if (near(g, k, data[l][k], want) || failures++ > MAX_FAILURES) continue;
            fprintf(stderr, "%s %s:", g->name, g->letters);
            for (uint32_t j = 0; j < n - g->results; j++) fprintf(stderr, " %llx", (unsigned long long)g->values[l][j]);
            fprintf(stderr, ": %llx, not %llx%s\n", (unsigned long long)data[l][k], (unsigned long long)want,
                    odd ? " (odd lanes)" : "");
        }
}
static void run_group(const Group *g) {
    char error[256];
    PtxModule *m = ptx_load(kernel_of(g), error, sizeof error);
    cr_assert(m, "%s: %s", g->name, error);
    uint64_t at = ptx_alloc(sizeof g->values);
    uint64_t (*data)[MAX_LETTERS] = ptx_host(at, sizeof g->values);
    for (uint32_t odd = 0; odd < 2; odd++) {
        uint32_t n = (uint32_t)strlen(g->letters), all = !odd;
        memcpy(data, g->values, sizeof g->values);
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t k = n - g->results; k < n; k++) data[l][k] = 0x5a;
        const void *params[] = {&at, &all};
        bool good = ptx_launch(ptx_function(m, "k"), (PtxDim3){1, 1, 1}, (PtxDim3){LANES, 1, 1}, 0, params);
        cr_assert(good, "%s: %s", g->name, ptx_fault());
        compare(g, (const uint64_t (*)[MAX_LETTERS])data, odd);
    }
    ptx_free(at);
    ptx_unload(m);
}
static void start_group(Group *g, const char *line) {
    char letters[2 * MAX_LETTERS] = "", about = 0;
    uint32_t n = 0;
    *g = (Group){0};
    sscanf(line, "%63s %15s %c", g->name, letters, &about);
    g->about = about == '~', g->results = 1;
    for (const char *c = letters; *c; c++) {
        if (*c == '|')
            g->pair = true, g->results = 2;
        else
            g->letters[n++] = *c;
    }
}
static void add_case(Group *g, const char *line) {
    char *end;
    if (g->n == LANES) {
        run_group(g);
        g->n = 0;
    }
    for (uint32_t k = 0; k < strlen(g->letters); k++, line = end) g->values[g->n][k] = strtoull(line, &end, 16);
    g->n++;
}
/* The names in the file. */
static struct {
    char name[4096][64];
    uint32_t n;
} tested;
static bool is_tested(const char *name) {
    for (uint32_t k = 0; k < tested.n; k++)
        if (!strcmp(tested.name[k], name)) return true;
    return false;
}
static bool is_carry(const char *name) {
    return strstr(name, ".cc.") || !strncmp(name, "addc.", 5) || !strncmp(name, "subc.", 5);
}
Test(ptx_ops, every_row_is_in_the_file) {
    const Rows *const all[] = {&rows_int, &rows_bits, &rows_float, &rows_half, &rows_compare, &rows_convert};
    char line[MAX_LINE];
    FILE *f = fopen(path, "r");
    cr_assert(f);
    while (fgets(line, sizeof line, f))
        if (line[0] != ' ') sscanf(line, "%63[^ #]", tested.name[tested.n++]);
    fclose(f);
    for (size_t t = 0; t < sizeof all / sizeof *all; t++)
        for (size_t r = 0; r < all[t]->n; r++)
            cr_expect(is_carry(all[t]->at[r].name) || is_tested(all[t]->at[r].name), "%s", all[t]->at[r].name);
}
Test(ptx_ops, every_operation) {
    char line[MAX_LINE];
    Group g = {0};
    FILE *f = fopen(getenv("PTX_OPS") ? getenv("PTX_OPS") : path, "r");
    cr_assert(f);
    while (fgets(line, sizeof line, f)) {
        if (line[0] == ' ')
            add_case(&g, line);
        else {
            if (g.n) run_group(&g);
            start_group(&g, line);
        }
    }
    if (g.n) run_group(&g);
    fclose(f);
    cr_assert_eq(failures, 0, "%u results are wrong", failures);
}
