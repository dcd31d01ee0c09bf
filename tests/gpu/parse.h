/* PTX text to instructions. What is not understood ends the parse with a message. */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H
#include "program.h"
#include <setjmp.h>

enum { MAX_PARTS = 24, MAX_CLASSES = 64, MAX_SCOPE_SYMBOLS = 4096 };

typedef struct { /* registers of one .reg: NAME, or NAME0 to NAME(count - 1) */
    Str name;
    uint32_t base, width, count; /* width 1: predicates; count 0: NAME itself */
} RegisterClass;
typedef struct {
    Str name;
    uint32_t at; /* the instruction it stands before; of .branchtargets: the first of its targets in lists */
    uint32_t n;  /* targets */
} Label;
typedef struct {
    Str name;
    bool in_list; /* of the target at `at` of the lists, else of instruction `at` */
    uint32_t at, line;
} Reference;
typedef struct Parser {
    PtxModule *m;
    PtxFunc *f; /* whose body is read */
    uint32_t function;
    const char *at;
    uint32_t line;
    char *error;
    size_t error_size;
    jmp_buf out;
    RegisterClass classes[MAX_CLASSES];
    uint32_t nclasses;
    Symbol *scope[MAX_SCOPE_SYMBOLS]; /* of the function */
    uint32_t nscope, call_at;
    struct {
        Label *at;
        uint32_t n, cap;
    } labels, tables;
    struct {
        Reference *at;
        uint32_t n, cap;
    } references, table_references;
    Intern constant_ids;
    uint32_t sink, predicate_sink; /* slots for results that nobody reads, or NO_SLOT */
} Parser;

__attribute__((format(printf, 2, 3), noreturn)) void wrong(Parser *, const char *format, ...);

/* lex.c: spaces and comments are skipped before each. */
char peek(Parser *);
bool accept(Parser *, const char *);
void expect(Parser *, const char *);
Str word(Parser *);        /* letters, digits, _ $ %; empty: there is none */
Str dotted_word(Parser *); /* with . and : */
bool number_of(Str, uint64_t *);
bool is_number(Parser *); /* does one begin here? */
uint64_t number(Parser *);
uint32_t small_number(Parser *);
void skip_line(Parser *);
void skip_braces(Parser *);
void skip_statement(Parser *); /* through its ; */

/* The parts of an opcode. */
typedef struct {
    Str all, at[MAX_PARTS];
    uint32_t n;
} Parts;
Parts parts_of(Parser *, Str opcode);
bool has(const Parts *, const char *part);
/* Which of the names, ended by NULL, is a part? -1: none. */
int which_of(const Parts *, const char *const *names);

typedef struct {
    const char *name;
    uint8_t bytes;
    char kind; /* b, u, s, f, g for bf16, 2 for pairs */
} TypeInfo;
const TypeInfo *type_info(Str); /* NULL: not a type */
const TypeInfo *last_type(Parser *, const Parts *);

/* operand.c */
uint32_t new_slot(Parser *, uint32_t width, uint32_t count);
uint32_t constant_slot(Parser *, uint32_t width, uint64_t value, const Symbol *);
uint32_t sink_slot(Parser *, uint32_t width);
Symbol *symbol_named(Parser *, Str);
/* The slot of a register, an immediate or an address, of this width; 1: a predicate. */
uint32_t operand(Parser *, uint32_t width);
/* The same of any width, which is stored; of immediates it is what is stored. */
uint32_t any_operand(Parser *, uint32_t *width);
void address_operand(Parser *, Ins *, uint32_t *slot, int64_t *offset); /* [base + offset] */
/* One operand or several in braces, of one width, to the function's lists. */
void list_operand(Parser *, Ins *, uint32_t *width);
uint32_t list_append(Parser *, uint32_t slot);
void row_operands(Parser *, Ins *, const Row *);

/* form.c: operations with a syntax of their own. */
typedef void Form(Parser *, Ins *, const Parts *);
typedef struct {
    const char *name; /* the first part of the opcode */
    Form *form;
} FormRow;
Form *form_of(Str first_part); /* NULL: none */

uint32_t function_named(const PtxModule *, Str); /* NO_SLOT: none */
Space space_of(const Parts *);
void parse_body(Parser *);
void parse_variable(Parser *, Space, bool external);
void finish_module(Parser *);

#endif
