#include "header.h"
#include "../../options.h"

/* The text of runtime/jaxcc.h, so that a header needs no other; tests/header.sh compares the two. */
static const char common[] =
    "#ifndef JAXCC_H\n"
    "#define JAXCC_H\n"
    "#include <stdint.h>\n"
    "#ifdef __cplusplus\n"
    "extern \"C\" {\n"
    "#endif\n"
    "\n"
    "/* What a call returns: 0, or the kind of failure, after which outputs are undefined. */\n"
    "enum {\n"
    "    JAXCC_OK,\n"
    "    JAXCC_ARGUMENT,  /* NULL for an array that has elements, other memory, or a tensor of another form */\n"
    "    JAXCC_DIMENSION, /* negative, unequal where they must be equal, a divisor of zero, too large */\n"
    "    JAXCC_MEMORY,    /* no memory for the workspace or for an output */\n"
    "    JAXCC_CPU,       /* the library was compiled for instructions that this CPU lacks, or for later GPUs */\n"
    "    JAXCC_CHECK,     /* --debug-nans, --check-bounds, --tape or check stopped the call, or a handler failed */\n"
    "    JAXCC_MISSING,   /* something the program needs is not there: LAPACK, a handler, a GPU */\n"
    "    JAXCC_INTERNAL\n"
    "};\n"
    "\n"
    "/* An output whose shape the program computes; release() frees what the library allocated. */\n"
    "typedef struct jaxcc_array {\n"
    "    void *data;\n"
    "    int32_t rank;\n"
    "    const int64_t *dims;\n"
    "    void (*release)(struct jaxcc_array *);\n"
    "} jaxcc_array;\n"
    "\n"
    "/* A parallel loop over [0, n): calls body on disjoint ranges that cover it, of at least `grain`\n"
    "   each if possible, and returns when all are done. */\n"
    "typedef void jaxcc_body(void *ctx, int64_t lo, int64_t hi);\n"
    "typedef void jaxcc_parallel_for(void *pool, jaxcc_body *body, void *ctx, int64_t n, int64_t grain);\n"
    "\n"
    "/* Receives the output of debug_print: one message, without its newline. */\n"
    "typedef void jaxcc_print(void *user, const char *text);\n"
    "\n"
    "/* One input or output. Extents are text: \"128\", \"b\", \"2*b + 1\". */\n"
    "typedef struct {\n"
    "    const char *name, *dtype;\n"
    "    int32_t rank;\n"
    "    const char *const *extents;\n"
    "} jaxcc_type;\n"
    "\n"
    "/* The description of a program in a library. */\n"
    "typedef struct {\n"
    "    uint32_t version, size; /* of this struct: fields are only added */\n"
    "    const char *name;\n"
    "    int32_t n_dims, n_in, n_out;\n"
    "    const char *const *dims;\n"
    "    const jaxcc_type *in, *out;\n"
    "    int32_t (*call)(const int64_t *dims, const void *const *in, void *const *out);\n"
    "    const char *(*error)(void);                                 /* the thread's last failure, one line */\n"
    "    int64_t (*workspace)(const int64_t *dims);                  /* bytes beside arrays of computed sizes */\n"
    "    void (*set_num_threads)(int n);                             /* 0: as many as there are CPUs */\n"
    "    void (*set_parallel_for)(jaxcc_parallel_for *, void *pool); /* NULL: the library's own */\n"
    "    void (*set_print)(jaxcc_print *, void *user);               /* NULL: standard error */\n"
    "} jaxcc_program;\n"
    "\n"
    "#ifdef __cplusplus\n"
    "}\n"
    "#endif\n"
    "#endif\n";

/* That of runtime/dlpack.h. */
static const char dlpack[] =
    "/* The tensors of DLPack, as in version 1.1 of its header, which may be included before this text or after it. "
    "*/\n"
    "#ifndef DLPACK_DLPACK_H_\n"
    "#define DLPACK_DLPACK_H_\n"
    "#define DLPACK_MAJOR_VERSION 1\n"
    "#define DLPACK_MINOR_VERSION 1\n"
    "#include <stddef.h>\n"
    "#include <stdint.h>\n"
    "#ifdef __cplusplus\n"
    "extern \"C\" {\n"
    "typedef enum : int32_t {\n"
    "#else\n"
    "typedef enum {\n"
    "#endif\n"
    "    kDLCPU = 1,\n"
    "    kDLCUDA = 2,\n"
    "    kDLCUDAHost = 3,\n"
    "    kDLOpenCL = 4,\n"
    "    kDLVulkan = 7,\n"
    "    kDLMetal = 8,\n"
    "    kDLVPI = 9,\n"
    "    kDLROCM = 10,\n"
    "    kDLROCMHost = 11,\n"
    "    kDLExtDev = 12,\n"
    "    kDLCUDAManaged = 13,\n"
    "    kDLOneAPI = 14,\n"
    "    kDLWebGPU = 15,\n"
    "    kDLHexagon = 16,\n"
    "    kDLMAIA = 17,\n"
    "    kDLTrn = 18\n"
    "} DLDeviceType;\n"
    "\n"
    "typedef enum {\n"
    "    kDLInt = 0,\n"
    "    kDLUInt = 1,\n"
    "    kDLFloat = 2,\n"
    "    kDLOpaqueHandle = 3,\n"
    "    kDLBfloat = 4,\n"
    "    kDLComplex = 5,\n"
    "    kDLBool = 6,\n"
    "    kDLFloat8_e3m4 = 7,\n"
    "    kDLFloat8_e4m3 = 8,\n"
    "    kDLFloat8_e4m3b11fnuz = 9,\n"
    "    kDLFloat8_e4m3fn = 10,\n"
    "    kDLFloat8_e4m3fnuz = 11,\n"
    "    kDLFloat8_e5m2 = 12,\n"
    "    kDLFloat8_e5m2fnuz = 13,\n"
    "    kDLFloat8_e8m0fnu = 14,\n"
    "    kDLFloat6_e2m3fn = 15,\n"
    "    kDLFloat6_e3m2fn = 16,\n"
    "    kDLFloat4_e2m1fn = 17\n"
    "} DLDataTypeCode;\n"
    "\n"
    "typedef struct {\n"
    "    DLDeviceType device_type;\n"
    "    int32_t device_id;\n"
    "} DLDevice;\n"
    "\n"
    "typedef struct {\n"
    "    uint8_t code, bits; /* code: a DLDataTypeCode */\n"
    "    uint16_t lanes;\n"
    "} DLDataType;\n"
    "\n"
    "/* An array that begins at data + byte_offset. Strides are in elements; NULL: dense, in row-major order. */\n"
    "typedef struct {\n"
    "    void *data;\n"
    "    DLDevice device;\n"
    "    int32_t ndim;\n"
    "    DLDataType dtype;\n"
    "    int64_t *shape, *strides;\n"
    "    uint64_t byte_offset;\n"
    "} DLTensor;\n"
    "\n"
    "/* Tensors that know how to give back their memory. */\n"
    "typedef struct DLManagedTensor {\n"
    "    DLTensor dl_tensor;\n"
    "    void *manager_ctx;\n"
    "    void (*deleter)(struct DLManagedTensor *self);\n"
    "} DLManagedTensor;\n"
    "\n"
    "typedef struct {\n"
    "    uint32_t major, minor;\n"
    "} DLPackVersion;\n"
    "\n"
    "#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)\n"
    "#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)\n"
    "#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)\n"
    "struct DLManagedTensorVersioned {\n"
    "    DLPackVersion version;\n"
    "    void *manager_ctx;\n"
    "    void (*deleter)(struct DLManagedTensorVersioned *self);\n"
    "    uint64_t flags;\n"
    "    DLTensor dl_tensor;\n"
    "};\n"
    "\n"
    "#ifdef __cplusplus\n"
    "}\n"
    "#endif\n"
    "#endif\n";

static const char *c_type(Dtype d) {
    uint32_t bits = dtype_info[d].bits;
    unsigned log = bits <= 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
    static const char *const sint[] = {"int8_t", "int16_t", "int32_t", "int64_t"};
    static const char *const uint[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"};
    switch (dtype_info[d].kind) {
    case DK_SINT: return sint[log];
    case DK_FLOAT: return bits == 64 ? "double" : bits == 32 ? "float" : uint[log];
    case DK_COMPLEX: return bits == 128 ? "double" : "float";
    case DK_KEY: return "uint32_t";
    default: return uint[log];
    }
}

static void put_comment(Ctx *cx, const Signature *s, Text *t) {
    uint32_t k = 0, width = 1;
    for (uint32_t i = 0; i < s->dims.n + s->in.n + s->out.n; i++)
        if (s->names[i].n > width) width = s->names[i].n;
    int w = (int)(width < 24 ? width : 24);
    each(Dim, d, s->dims)
        text_add(t, " * %-*s  dimension %.*s\n", w, s->names[k++].at, SF(dim_at(cx->types, *d)->name));
    each(Val, v, s->in) text_add(t, " * %-*s  input   %.*s\n", w, s->names[k++].at, SF(signature_type_text(cx, s, *v)));
    for (uint32_t i = 0; i < s->out.n; i++) {
        Val v = s->out.at[i];
        const char *whose = signature_computed(cx, s, v) ? ", which the library allocates" : "";
        text_add(t, " * %-*s  output  %.*s%s%.*s%s\n", w, s->names[k++].at, SF(signature_type_text(cx, s, v)),
                 s->is[i].n ? ", " : "", SF(s->is[i]), whose);
    }
}

/* `between`: what separates two parameters. */
static void put_prototype(Ctx *cx, const Signature *s, const char *between, Text *t) {
    uint32_t k = 0;
    const char *comma = "";
    text_add(t, "int32_t %s(", s->name);
    for (; k < s->dims.n; k++, comma = between) text_add(t, "%sint64_t %s", comma, s->names[k].at);
    for (uint32_t i = 0; i < s->in.n; i++, comma = between) {
        const char *type = c_type(val_array(cx, s->in.at[i])->dtype);
        text_add(t, "%sconst %s *%s", comma, type, s->names[k++].at);
    }
    for (uint32_t i = 0; i < s->out.n; i++, comma = between) {
        const char *type = c_type(val_array(cx, s->out.at[i])->dtype);
        if (signature_computed(cx, s, s->out.at[i])) type = "jaxcc_array";
        text_add(t, "%s%s *%s", comma, type, s->names[k++].at);
    }
    text_add(t, "%s);\n", *comma ? "" : "void");
}

static void put_program(Ctx *cx, const Program *p, Text *t) {
    const char *name = p->name;
    Signature s = signature_of(cx, name, p->j);
    text_add(t, "\n/* %s\n *\n", name);
    put_comment(cx, &s, t);
    text_add(t,
             " *\n * Arrays are dense, in row-major order. Returns JAXCC_OK, or what failed; then "
             "%s_error()\n"
             " * says why in one line, and no output is meaningful. */\n",
             name);
    Text line = {.arena = cx->arena};
    put_prototype(cx, &s, ", ", &line);
    if (line.n > 100)
        put_prototype(cx, &s, ",\n    ", t);
    else
        text_put(t, (Str){line.at, line.n});
    text_add(t, "const char *%s_error(void);\nconst jaxcc_program *%s_program(void);\n", name, name);
    if (cx->options->dlpack)
        text_add(
            t,
            "/* The same with tensors of DLPack, one for each input and each output, whose types, shapes and strides\n"
            " * are checked. Dimensions follow from the shapes. */\n"
            "int32_t %s_dlpack(DLTensor *const *in, DLTensor *const *out);\n",
            name);
    if (!cx->options->device_pointers) return;
    text_add(t,
             "/* The arrays are memory of the GPU, aligned to 16 bytes. The work goes to the stream (a CUstream) that\n"
             " * this sets for the thread's calls, and a call returns before it is done. */\n"
             "void %s_stream(void *stream);\n",
             name);
}

void header_text(Ctx *cx, Programs programs, Text *t) {
    const char *name = programs.at[0].name;
    text_put(t, str(common));
    if (cx->options->dlpack) text_add(t, "\n%s", dlpack);
    text_add(t, "\n#ifndef JAXCC_%s_H\n#define JAXCC_%s_H\n", name, name);
    text_put(t, S("#ifdef __cplusplus\nextern \"C\" {\n#endif\n"));
    each(const Program, p, programs) put_program(cx, p, t);
    text_put(t, S("\n#ifdef __cplusplus\n}\n#endif\n#endif\n"));
}
