#include "cname.h"
#include <fnmatch.h>
#include <stdio.h>

static const char *const keywords[] = {
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Bool",
    "_Complex",
    "_Generic",
    "_Imaginary",
    "_Noreturn",
    "_Static_assert",
    "_Thread_local",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "jaxcc_array",
    "jaxcc_program",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
};

/* Macros of the C headers and what they include, and of the C compiler, which would be expanded in a header: the
   patterns that the C standard and POSIX reserve for each, then single names. */
/* clang-format off */
static const char *const macros[] = {
    "__*", "_[A-Z]*", "linux", "unix",                                              /* the compiler's own */
    "E[0-9A-Z]*", "errno",                                                          /* errno.h; EOF, EXIT_SUCCESS */
    "[A-Z]*_MAX", "[A-Z]*_MIN", "[A-Z]*_WIDTH", "[A-Z]*_BIT",                       /* limits.h, stdint.h */
    "FLT_[A-Z]*", "DBL_[A-Z]*", "LDBL_[A-Z]*", "DECIMAL_DIG",                       /* float.h */
    "PRI[a-zX]*", "SCN[a-zX]*",                                                     /* inttypes.h */
    "FE_[A-Z]*", "FP_[0-9A-Z]*", "M_[0-9A-Z]*", "HUGE_VAL*", "SNAN*", "MATH_[A-Z]*", /* fenv.h, math.h */
    "INFINITY", "NAN", "MAXFLOAT", "math_errhandling", "I", "complex", "imaginary",
    "BUFSIZ", "NULL", "SEEK_[A-Z]*", "P_tmpdir", "stdin", "stdout", "stderr", "assert", /* stdio.h, assert.h */
    "L_INCR", "L_SET", "L_XTND", "L_ctermid", "L_cuserid", "L_tmpnam", "RENAME_[A-Z]*",
    "WCONTINUED", "WEOF", "WEXITED", "WNOHANG", "WNOWAIT", "WSTOPPED", "WUNTRACED", /* stdlib.h, wchar.h */
    "BIG_ENDIAN", "LITTLE_ENDIAN", "PDP_ENDIAN", "BYTE_ORDER", "FD_SETSIZE", "NFDBITS",
    "LC_[A-Z]*", "CLOCK*_[A-Z]*", "TIME*_[A-Z]*", "STA_[A-Z]*", "ADJ_[A-Z]*", "MOD_[A-Z]*", /* locale.h, time.h */
    "SIG[A-Z_]*", "*SIGSTKSZ", "NSIG", "NGREG", "S[AIS]_[A-Z]*", "si_*", "sa_*", "sigev_*", /* signal.h */
    "BUS_[A-Z]*", "CLD_[A-Z]*", "FPE_[A-Z]*", "ILL_[A-Z]*", "POLL_[A-Z]*", "REG_[A-Z]*", "SEGV_[A-Z]*", "TRAP_[A-Z]*",
    "SCHED_[A-Z]*", "sched_priority", "CLONE_[A-Z]*", "CPU_SETSIZE", "CSIGNAL", "PTHREAD_[A-Z]*", /* sched.h, unistd.h */
    "STD*_FILENO", "CLOSE_RANGE_[A-Z]*", "F_OK", "R_OK", "W_OK", "X_OK", "F_LOCK", "F_TEST", "F_TLOCK", "F_ULOCK",
    "MAX_CANON", "MAX_INPUT", "NL_[A-Z]*MAX", "NZERO", "PIPE_BUF",
};
/* clang-format on */

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }

bool cname_valid(Str s) {
    for (uint32_t i = 0; i < s.n; i++)
        if (!letter(s.at[i]) && !(i && digit(s.at[i]))) return false;
    return s.n > 0;
}

bool cname_keyword(Str s) {
    enum { LONGEST = 64 };
    char name[LONGEST];
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (str_is(s, keywords[i])) return true;
    if (s.n >= LONGEST) return false;
    snprintf(name, sizeof name, "%.*s", SF(s));
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        if (fnmatch(macros[i], name, 0) == 0) return true;
    return false;
}

Str cname_from(Arena *arena, Str s) {
    char *c = arena_new(arena, char, (size_t)s.n + 2), *end = c;
    if (s.n == 0 || digit(s.at[0])) *end++ = '_';
    for (uint32_t i = 0; i < s.n; i++) *end++ = letter(s.at[i]) || digit(s.at[i]) ? s.at[i] : '_';
    Str name = {c, (uint32_t)(end - c)};
    return cname_keyword(name) ? str_format(arena, "%s_", c) : name;
}
