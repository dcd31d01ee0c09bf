/* The command line, -D and --consts as functions; what is printed is tested by text. */
#include "compiler/cname.h"
#include "compiler/file.h"
#include "compiler/options.h"
#include "compiler/timer.h"
#include <criterion/criterion.h>
#include <criterion/redirect.h>

static Options read_line(const char *line, int *status) {
    static char text[512];
    char *argv[32] = {"jaxcc"}, *rest = text;
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *word; argc < 32 && (word = strsep(&rest, " "));)
        if (*word) argv[argc++] = word;
    Options o;
    Arena *arena = arena_open(); /* the options point into it */
    *status = options_read(arena, diags_new(arena), argc, argv, &o);
    return o;
}

static Options good(const char *line) {
    int status;
    Options o = read_line(line, &status);
    cr_assert_eq(status, OPTIONS_GO, "%s: status %d", line, status);
    return o;
}

Test(options, defaults) {
    Options o = good("dir/my-model.jaxpr");
    cr_assert_str_eq(o.output, "my-model.so");
    cr_assert_str_eq(o.header, "my-model.h");
    cr_assert_str_eq(o.name, "my_model");
    cr_assert_eq(o.emit, EMIT_so);
    cr_assert_eq(o.opt, 2);
    cr_assert_null(o.march);
}

Test(options, suffix_decides) {
    cr_assert_eq(good("m.jaxpr -o x.a").emit, EMIT_a);
    cr_assert_eq(good("m.jaxpr -ox.o").emit, EMIT_obj);
    cr_assert_eq(good("m.jaxpr -o x.s").emit, EMIT_asm);
    cr_assert_eq(good("m.jaxpr -o x.mlir").emit, EMIT_mlir);
    cr_assert_eq(good("m.jaxpr -o x.h").emit, EMIT_header);
    cr_assert_eq(good("m.jaxpr -o lib").emit, EMIT_so);
    cr_assert_eq(good("m.jaxpr -o x.s --emit=llvm").emit, EMIT_llvm);
}

Test(options, text_goes_to_standard_output) {
    cr_assert_str_eq(good("m.jaxpr --emit=jaxpr").output, "-");
    cr_assert_str_eq(good("- -o d/lib.so").name, "lib");
    cr_assert_null(good("m.jaxpr --emit=mlir").header);
}

Test(options, values_joined_or_apart) {
    Options o = good("m.jaxpr -Db=128 -D n=0 --name=f --name g -O3 -march=x86-64-v3 -MD -MF x.d");
    cr_assert_eq(o.ndims, 2);
    cr_assert_eq(o.dims[0].value, 128);
    cr_assert(str_is(o.dims[1].name, "n"));
    cr_assert_str_eq(o.name, "g");
    cr_assert_str_eq(o.march, "x86-64-v3");
    cr_assert_str_eq(o.dep_file, "x.d");
}

Test(options, wrong_lines_are_status_2, .init = cr_redirect_stderr) {
    const char *const lines[] = {"",
                                 "a b",
                                 "m --vjp=1",
                                 "m --grad=a",
                                 "--grad 0 m",
                                 "m --rule f=a --rule f=b,c",
                                 "m -O4",
                                 "m -D b",
                                 "m -D b=-1",
                                 "m -o",
                                 "m --emit=exe",
                                 "m --name=1a",
                                 "m --name=int",
                                 "m -Wx",
                                 "m --no-check",
                                 "m --header",
                                 "m --check=yes",
                                 "m --passes",
                                 "m --threefry-partitionable=perhaps"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int status;
        read_line(lines[i], &status);
        cr_assert_eq(status, 2, "'%s' has status %d", lines[i], status);
    }
}

Test(options, help_and_version_end_well, .init = cr_redirect_stdout) {
    int status;
    cr_redirect_stderr();
    read_line("--help", &status);
    cr_assert_eq(status, 0);
    read_line("--version --unknown", &status);
    cr_assert_eq(status, 2);
}

Test(cname, any_text_becomes_an_identifier) {
    Arena *arena = arena_open();
    cr_assert(str_is(cname_from(arena, S("a-b.c")), "a_b_c"));
    cr_assert(str_is(cname_from(arena, S("1x")), "_1x"));
    cr_assert(str_is(cname_from(arena, S("class")), "class_"));
    cr_assert(str_is(cname_from(arena, S("")), "_"));
    cr_assert_not(cname_valid(S("")));
    cr_assert_not(cname_valid(S("9a")));
    arena_close(arena);
}

Test(file, paths) {
    cr_assert(str_is(path_stem(S("a.b/c.d")), "a.b/c"));
    cr_assert(str_is(path_stem(S("a.b/c")), "a.b/c"));
    cr_assert(str_is(path_stem(S("d/.hidden")), "d/.hidden"));
    cr_assert(str_is(path_base(S("a/b/c.d")), "c.d"));
}

Test(timer, without_a_timer_nothing_happens) { timer_stage(NULL, "parse"); }
