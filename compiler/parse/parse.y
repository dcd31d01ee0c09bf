/* The grammar of jaxprs of all versions, over the terminals that read.c makes. Actions only build. */
%code requires {
#include "parse/parser.h"
}
%code {
#define YYINITDEPTH 10000 /* more than MOST_NESTING levels need: the stack never grows */
int jaxcc_yylex(JAXCC_YYSTYPE *, Parser *);
static void jaxcc_yyerror(Parser *, const char *message);

static Span span(const Parser *p, Terminal t) { return toks_span(p, t.at, t.end); }
static Type unit(const Parser *p) { return type_of(p->cx->types, DT_unit, 0, NULL); }

static void push_binder(Parser *p, Terminal t, Type type) {
    use_push(p, name_bind(p, t.at, type), span(p, t));
}

/* If operands are printed with types, an untyped variable takes its type from them. */
static void push_operand(Parser *p, Terminal t, Type type) {
    Val v = name_use(p, t.at);
    if (type && !val_type(p->cx, v)) val_info(p->cx, v)->type = type;
    use_push(p, v, span(p, t));
}

static void push_jaxpr(Parser *p, Jaxpr *j) {
    value_push(p, (Value){.kind = V_JAXPR, .span = j->span, .jaxpr = j});
}
}
%define api.pure full
%define api.prefix {jaxcc_yy}
%define api.token.prefix {TK_}
%define parse.error custom
%param { Parser *p }
%union {
    Terminal t;
    uint32_t n;
    Jaxpr *jaxpr;
    Apply apply;
    struct { uint32_t token, values; } open;
    struct { uint32_t fixups, hoisted; } lets;
}
%token END 0 "end of file"
%token <t> SHARED_LET "'let'" SHNAME "a name" EQ "'='" IN "'in'" JOPEN "'{ lambda'" DOT "'.'" LET "let" JCLOSE "'}'"
%token <t> SEMI "';'" NAME "a variable" STAR "'*'" TYPE "a type" SEP "the next equation" PRIM "a primitive"
%token <t> LPAR "'('" RPAR "')'" ARROW "'<-'" COMMA "','" PLUSEQ "'+='" LBRK "'['" RBRK "']'" LIT "a literal"
%token <t> EFFECTS "effects" POPEN "parameters" KEY "a parameter" PCLOSE "the end of the parameters, ']'"
%token <t> REFNAME "a ref" INDEX "an index" WORD "a word" NUM "a number" STR "a string" RAW "text" OP "punctuation"
%token <t> GOPEN "an opening bracket" GCLOSE "a closing bracket"
%type <n> outs listed atoms binders results ref indices params popen
%type <t> prim effects
%type <jaxpr> jaxpr
%type <apply> apply tail
%type <open> key gopen
%type <lets> letmark
%%
program: lets jaxpr { p->program = $2; };
lets: %empty | lets let;
let: SHARED_LET SHNAME EQ jaxpr IN { let_end(p, $2, $4); };

jaxpr: jopen head dot let_opt body IN outs effects JCLOSE { $$ = jaxpr_end(p, $7, $8, $9.at); }
     | jopen head dot let_opt body IN error JCLOSE { yyerrok; $$ = jaxpr_broken(p, $8.at); }
     | jopen head dot let_opt body JCLOSE { $$ = jaxpr_broken(p, $6.at); }
     | jopen error JCLOSE { yyerrok; $$ = jaxpr_broken(p, $3.at); };
jopen: JOPEN { scope_open(p, $1.at); };
head: binder_list | head semi binder_list;
semi: SEMI { head_semi(p); };
binder_list: %empty | binder_list binder;
binder: NAME { push_binder(p, $1, 0); }
      | NAME TYPE { push_binder(p, $1, $2.type); }
      | STAR { push_binder(p, $1, unit(p)); }
      | STAR TYPE { push_binder(p, $1, unit(p)); };
dot: DOT { head_end(p); };
let_opt: %empty | LET;
effects: %empty { $$ = (Terminal){0}; } | EFFECTS;

outs: %empty { $$ = 0; }
    | atom { $$ = 1; }
    | LPAR RPAR { $$ = 0; }
    | LPAR listed RPAR { $$ = $2; }
    | LPAR listed COMMA RPAR { $$ = $2; }
    | LBRK RBRK { $$ = 0; }
    | LBRK listed RBRK { $$ = $2; };
listed: atom { $$ = 1; } | listed COMMA atom { $$ = $1 + 1; };
atoms: %empty { $$ = 0; } | atoms atom { $$ = $1 + 1; };
atom: NAME { push_operand(p, $1, 0); }
    | NAME TYPE { push_operand(p, $1, $2.type); }
    | STAR { use_push(p, val_literal(p->cx, unit(p), (Lit){LIT_UNIT}, span(p, $1)), span(p, $1)); }
    | LIT { use_push(p, literal_val(p, $1.at, $1.end, 0), span(p, $1)); }
    | LIT TYPE { use_push(p, literal_val(p, $1.at, $1.end, $2.type), span(p, $1)); };

body: eqn_opt | body SEP eqn_opt;
eqn_opt: %empty
       | eqn
       | error {
             if (p->stop) YYABORT;
             yyclearin;
             yyerrok;
             eqn_broken(p);
         };
eqn: results EQ apply { eqn_apply(p, $1, $3); }
   | apply { eqn_apply(p, 0, $1); }
   | binders ARROW own ref { eqn_ref(p, P_get, span(p, $2), $1, $4, 0); }
   | binders COMMA own ref ARROW ref COMMA atom { eqn_ref(p, P_swap, span(p, $5), $1, $4, $6); }
   | ref ARROW atom { eqn_ref(p, P_swap, span(p, $2), 0, $1, 0); }
   | ref PLUSEQ atom { eqn_ref(p, P_addupdate, span(p, $2), 0, $1, 0); };
results: binders { $$ = $1; results_end(p, $1); } | LPAR binders RPAR { $$ = $2; results_end(p, $2); };
own: %empty { results_end(p, $<n>-1); }; /* the binders ahead of the token before */
binders: binder { $$ = 1; } | binders binder { $$ = $1 + 1; };
apply: prim params atoms tail {
           $$ = $4;
           $$.prim = $1;
           $$.params = $2;
           $$.noperands = $3;
       };
prim: PRIM { prim_begin(p, $1); };
tail: %empty { $$ = (Apply){0}; }
    | jaxpr LBRK atoms SEMI atoms RBRK { $$ = (Apply){.body = $1, .nconsts = $3, .nfree = $5}; };
ref: REFNAME { push_operand(p, $1, 0); } indices { $$ = ref_end(p, 1 + $3); };
indices: %empty { $$ = 0; } | indices INDEX { $$ = $1 + ref_index(p, $2); };

params: %empty { $$ = p->params.n; } | popen param_list PCLOSE { $$ = $1; };
popen: POPEN { $$ = p->params.n; };
param_list: %empty | param_list param;
param: key items { param_add(p, scope_now(p)->prim, $1.token, $1.values); };
key: KEY { $$.token = $1.at; $$.values = p->values.n; };
items: %empty | items item;
item: jaxpr { push_jaxpr(p, $1); }
    | letmark let lets jaxpr { fixups_resolve(p, $1.fixups, $1.hoisted, false); push_jaxpr(p, $4); }
    | WORD { value_word(p, $1); }
    | NUM { value_number(p, $1); }
    | STR { value_text(p, V_STR, $1); }
    | RAW { value_text(p, V_TEXT, $1); }
    | OP { value_operator(p, $1); }
    | gopen items GCLOSE { value_group(p, $1.values, $1.token, $3.at); };
gopen: GOPEN { $$.token = $1.at; $$.values = p->values.n; };
letmark: %empty { $$.fixups = p->fixups.n; $$.hoisted = p->hoisted.n; };
%%
/* Reports the terminal that does not fit, and the alternatives. */
static int yyreport_syntax_error(const yypcontext_t *context, Parser *p) {
    enum { MOST = 64 };
    yysymbol_kind_t kinds[MOST];
    const char *names[MOST];
    int n = yypcontext_expected_tokens(context, kinds, MOST);
    for (int i = 0; i < n; i++) names[i] = yysymbol_name(kinds[i]);
    syntax_error(p, names, n < 0 ? 0 : (uint32_t)n);
    return 0;
}

static void jaxcc_yyerror(Parser *p, const char *message) { /* the stack of the parser is full */
    diag(p->cx->diags, span(p, p->last), "nested too deep: %s", message);
    p->stop = true;
}
