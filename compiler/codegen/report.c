#include "report.h"
#include "../options.h"
#include "plan/interface.h"
#include "plan/report.h"

/* The page, report.html: the data take the place of its marker. */
extern const char report_page[], report_page_end[];
__asm__(".pushsection .rodata\n"
        "report_page: .incbin \"compiler/codegen/report.html\"\n"
        "report_page_end:\n"
        ".popsection\n");
static const char marker[] = "@REPORT@";

/* The object: what was compiled and how, the program's text by lines, its symbolic dimensions, the plans of
   plan/report.h. */
static void put_data(Ctx *cx, Programs programs, Text *to) {
    const Options *o = cx->options;
    text_put(to, S("{\"jaxcc\":\"" JAXCC_VERSION "\",\"program\":"));
    report_string(to, str(diag_path(cx->diags, INPUT_FILE)));
    text_put(to, S(",\"name\":"));
    report_string(to, str(programs.at[0].name));
    text_add(to, ",\"level\":%d,\"text\":", o->opt);
    report_string(to, diags_text(cx->diags, INPUT_FILE));
    text_put(to, S(",\"dimensions\":["));
    Intern seen = {.arena = cx->arena};
    each(const Program, p, programs) {
        Dims symbols = program_symbols(cx, p->j);
        each(const Dim, d, symbols) {
            bool fresh;
            uint32_t n = intern(&seen, d, sizeof *d, &fresh);
            if (!fresh) continue;
            text_put(to, n ? S(",") : S(""));
            report_string(to, ctx_dim_text(cx, *d));
        }
    }
    text_put(to, S("],\"plans\":"));
    text_put(to, (Str){cx->report->plans.at, cx->report->plans.n});
    text_put(to, S("]}"));
}
bool report_write(Ctx *cx, Programs programs) {
    if (!cx->report) return true;
    Text text = {.arena = cx->arena};
    if (options_report_page(cx->options)) {
        Str page = {report_page, (uint32_t)((uintptr_t)report_page_end - (uintptr_t)report_page)};
        const char *at = memmem(page.at, page.n, marker, sizeof marker - 1);
        assert(at);
        text_put(&text, (Str){page.at, (uint32_t)(at - page.at)});
        put_data(cx, programs, &text);
        at += sizeof marker - 1;
        text_put(&text, (Str){at, (uint32_t)(page.at + page.n - at)});
    } else {
        put_data(cx, programs, &text);
        text_put(&text, S("\n"));
    }
    const Output *out = output_open(cx->arena, cx->diags, cx->options->report, false);
    return out && output_write(cx->diags, out, (Str){text.at, text.n});
}
