/* Shared by the files of parse/: raw tokens, names and scopes, the parser's state. */
#ifndef JAXCC_PARSER_H
#define JAXCC_PARSER_H
#include "parse.h"

/* ---- limits: a text that exceeds one is refused with a message */
enum {
    MOST_TOKENS = 1 << 24,
    MOST_NESTING = 1000, /* of brackets and jaxprs together; of calls of hoisted jaxprs */
    MOST_RANK = 64,
    MOST_PARAMS = 256,
};

/* ---- raw tokens (lex.l): one pass over the text, no context */
typedef enum {
    T_END,
    T_NAME,     /* letters, digits, _ */
    T_NUMBER,   /* begins with a digit, or with a point and a digit; up to the next separator */
    T_STRING,   /* quoted, with its quotes */
    T_RAW,      /* the text of fmt=, up to has_placeholders= */
    T_ARROW,    /* <- */
    T_PLUSEQ,   /* += */
    T_ELLIPSIS, /* ... */
    T_OTHER,    /* allowed only inside the text of a parameter */
    /* other punctuation: the character itself, of ASCII */
    TOKEN_KINDS = 128
} TokKind;
enum { AFTER_BLANK = 1, LINE_FIRST = 2 };
typedef struct {
    uint32_t at, n;
    uint8_t kind, flags;
} Tok;
typedef struct {
    Tok *at;
    uint32_t n, cap;
} Toks;

/* All tokens of a text, ended by T_END; false after a diagnostic. */
bool lex(Ctx *, uint32_t file, Toks *);

/* ---- names: one number for each spelling */
typedef uint32_t NameId;
typedef struct {
    Str text;
    Val val; /* the variable of this name in the scope numbered `scope` */
    uint32_t scope;
    Val missing;    /* the value that stands for an unbound use of it */
    bool looked_up; /* prim and key are known */
    Prim prim;
    ParamKey key;
    /* What it is, by its first occurrence in a shape (shape.c). */
    enum { DIM_UNSEEN, DIM_FREE, DIM_VARIABLE } dim;
} Name;
typedef struct { /* a binding of an outer scope that an inner one hides */
    NameId name;
    Val val;
    uint32_t scope;
} Hidden;
typedef struct {
    uint32_t number;                                             /* unique over the text, from 1 */
    uint32_t open;                                               /* the token of its opening brace */
    uint32_t hidden, unders, uses, eqns, params, values, fixups; /* heights of the stacks when it was opened */
    Jaxpr *jaxpr;                                                /* the jaxpr that it becomes */
    Prim prim;                                                   /* of the equation being read … */
    Val first_result, end_result;                                /* … and the range of its results */
    uint32_t nlists, nconsts;                                    /* binder lists so far; binders before the last */
    bool broken;                                                 /* something in it could not be read … */
    bool damaged; /* … perhaps results of equations, so that an unknown name may be one */
} Scope;

/* ---- hoisted jaxprs and the parameters that name them, before or after their definition */
typedef struct {
    Str name;
    Jaxpr *jaxpr;
    Span span;
} Hoisted;
typedef struct {
    Jaxpr **slot; /* to be filled */
    Str name;
    Span span;
} Fixup;

/* ---- a value with the place where the text names it */
typedef struct {
    Val val;
    Span at;
} Use;

/* ---- where the reader stands (read.c) */
typedef enum { F_TOP, F_HEAD, F_EQNS, F_OUTS, F_PARAMS, F_GROUP } FrameKind;
typedef enum {
    AT_START,    /* F_EQNS: of an equation; others: at the beginning */
    IN_RESULTS,  /* left of = or <- */
    AT_PRIM,     /* right of = */
    AFTER_PRIM,  /* parameters may follow */
    IN_OPERANDS, /* until the next equation starts */
    IN_REF,      /* a ref with its indices */
    IN_TAIL,     /* the bracket after a body of 2019 */
    AT_END,      /* F_OUTS: effects may follow */
    LET_NAME,    /* F_TOP: after let */
    LET_BODY,    /* F_TOP: after its = */
} FrameState;
typedef struct {
    uint8_t kind, state;
    bool nested;    /* F_TOP inside a parameter: it ends with its jaxpr */
    bool binds;     /* F_EQNS: the equation has a left side */
    bool typed;     /* F_EQNS: its last result has a type */
    char close;     /* the bracket that ends it */
    uint32_t semis; /* F_HEAD */
    uint32_t open;  /* the token that opened it */
    uint32_t angle; /* F_PARAMS: depth in < > */
    /* F_EQNS: names up to run_end have been examined: they end at an `=`; run_line is the last one that is first on its
       line */
    uint32_t run_end, run_line;
    bool run_binds;
} Frame;

#define STACK(T)                                                                                                       \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        uint32_t n, cap;                                                                                               \
    }

/* A terminal: its raw tokens [at, end), and the type if it is one. */
typedef struct {
    uint32_t at, end;
    Type type;
} Terminal;

typedef struct Parser {
    Ctx *cx;
    Arena *arena;
    uint32_t file;
    Str text;
    Toks toks;

    /* the reader */
    uint32_t pos; /* the next raw token */
    STACK(Frame) frames;
    uint32_t depth;     /* of jaxprs */
    uint32_t old_depth; /* before the last terminal */
    uint8_t old_kind;   /* of the innermost jaxpr's frame before it */
    Terminal last;      /* the last terminal, and what it was */
    int last_kind;
    bool panic, panic_closes, stop; /* skipping to where the grammar can go on; a limit was exceeded */
    bool ended;                     /* the brackets that are open at the end of the text are reported */
    bool resend;                    /* the last terminal itself is such a point */
    uint32_t panic_depth;

    /* names */
    Intern name_ids;
    STACK(Name) names;
    STACK(Hidden) hidden;
    STACK(Scope) scopes;
    uint32_t nscopes;
    STACK(Val) unders;     /* variables called _ */
    STACK(NameId) extents; /* names of variables that are dimensions */

    /* what the grammar builds */
    STACK(Use) uses;
    STACK(Eqn) eqns;
    STACK(Param) params;
    STACK(Value) values;
    STACK(Hoisted) hoisted;
    STACK(Jaxpr *) lets; /* all jaxprs ever hoisted */
    STACK(Fixup) fixups;
    Jaxpr *program;
    Span before;       /* an equation that JAX 0.5 and later print differently; n = 0: none yet */
    bool recent;       /* something in the text is printed by later versions only */
    uint32_t misnamed; /* the number of errors that are only about names */
} Parser;

/* ---- read.c: raw tokens → terminals */
static inline const Tok *tok(const Parser *p, uint32_t i) { return &p->toks.at[i < p->toks.n ? i : p->toks.n - 1]; }
static inline Str tok_text(const Parser *p, uint32_t i) {
    const Tok *t = tok(p, i);
    return (Str){p->text.at + t->at, t->n};
}
static inline bool tok_is(const Parser *p, uint32_t i, const char *word) {
    return tok(p, i)->kind == T_NAME && str_is(tok_text(p, i), word);
}
/* Does token i follow the previous one without a blank? */
static inline bool tok_sticks(const Parser *p, uint32_t i) { return !(tok(p, i)->flags & AFTER_BLANK); }
/* The place of the tokens [from, to). */
Span toks_span(const Parser *, uint32_t from, uint32_t to);
/* The token after the bracket that matches the one at i; i if there is none nearby. */
uint32_t tok_match(const Parser *, uint32_t i);
void parser_panic(Parser *);

/* ---- name.c: scopes */
NameId name_id(Parser *, Str);
Name *name_at(Parser *, Str);
void scope_open(Parser *, uint32_t open);
void scope_close(Parser *);
static inline Scope *scope_now(Parser *p) { return &p->scopes.at[p->scopes.n - 1]; }
/* The variable of this name in the innermost jaxpr; 0 if there is none. */
Val name_val(Parser *, NameId);
bool name_is_bound(Parser *, uint32_t token);
/* A new variable named by the token; reports a second binding. */
Val name_bind(Parser *, uint32_t token, Type);
/* The variable that an operand names; reports an unknown one. */
Val name_use(Parser *, uint32_t token);
/* Does the value stand for an unknown name (name_use)? */
bool name_is_missing(Parser *, Val);
/* The last variable called _ whose type `fits`, else the last one, else 0. */
Val name_under(Parser *, bool fits(const Ctx *, Type, Type), Type wanted);

/* ---- shape.c: types and dimensions */
/* Reads the type at token *i and advances *i past it; false after a diagnostic. */
bool type_read(Parser *, uint32_t *i, Type *);
bool dim_read(Parser *, uint32_t *i, Dim *);
/* The token after the type that starts at i, without reading it; i if there is no type. */
uint32_t type_skip(const Parser *, uint32_t i);
/* Before anything is read: names that are symbols by the inputs of the main jaxpr, if there are others before it. */
void symbols_of_inputs(Parser *);

/* ---- literal.c */
/* The token after the literal at token i; i if there is none. `inf` and `nan` count as literals. */
uint32_t literal_end(const Parser *, uint32_t i);
/* The literal at tokens [from, to) as a value of that type (0: unknown). */
Val literal_val(Parser *, uint32_t from, uint32_t to, Type);

/* ---- param.c: values of parameters */
void value_push(Parser *, Value);
void value_word(Parser *, Terminal);
void value_number(Parser *, Terminal);
void value_text(Parser *, ValueKind, Terminal);
void value_operator(Parser *, Terminal);
/* The values from `mark` on are the items of a bracket. */
void value_group(Parser *, uint32_t mark, uint32_t open, uint32_t close);
/* The values from `mark` on are the value of a parameter. */
void param_add(Parser *, Prim, uint32_t key, uint32_t mark);
/* Notes that the slot is to be filled with the hoisted jaxpr that the text at `span` names. */
void fixup_add(Parser *, Jaxpr **slot, Span);
void fixups_resolve(Parser *, uint32_t from, uint32_t hoisted_from, bool last);

/* ---- build.c: equations and jaxprs from the stacks */
static inline void use_push(Parser *p, Val v, Span at) { push(p->arena, &p->uses, ((Use){v, at})); }
/* The right side of `=`: its operands are the last ones on the stack of uses. */
typedef struct {
    Terminal prim;
    uint32_t noperands, params;
    /* 2019: the body that follows, and the numbers of operands bound to its constants and free variables */
    Jaxpr *body;
    uint32_t nconsts, nfree;
} Apply;
void head_semi(Parser *);
void head_end(Parser *);
void prim_begin(Parser *, Terminal);
void results_end(Parser *, uint32_t n);
void eqn_apply(Parser *, uint32_t nresults, Apply);
/* get, swap, addupdate: the results; `nref` uses for the reference and its indices; `nagain` for the reference that a
   swap reads, which must be the same; then the value to store. */
void eqn_ref(Parser *, Prim, Span, uint32_t nresults, uint32_t nref, uint32_t nagain);
/* Reads [index] or {view}; returns the number of operands in it. */
uint32_t ref_index(Parser *, Terminal);
/* The indices of a reference, which has `n` uses, become one value; returns n. */
uint32_t ref_end(Parser *, uint32_t n);
Jaxpr *jaxpr_end(Parser *, uint32_t nresults, Terminal effects, uint32_t close);
/* The end of a jaxpr with an error. */
Jaxpr *jaxpr_broken(Parser *, uint32_t close);
void eqn_broken(Parser *);
void let_end(Parser *, Terminal name, Jaxpr *);
/* Reports the last terminal; `expected` are its alternatives. */
void syntax_error(Parser *, const char *const *expected, uint32_t n);
/* Reports that the text ends too early, `where` ("" or " in a type"), and which brackets are open; returns false. */
bool unexpected_end(Parser *, const char *where);

/* ---- dialect.c */
/* Rewrites old spellings and adds the equation, or what replaces it, to the stack of equations. */
void dialect_add(Parser *, Eqn);
void eqn_add(Parser *, Eqn);

#endif
