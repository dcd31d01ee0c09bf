/* Data of constants. Small ones are globals of the module. Large ones form one block, a large section in the sense of
   x86-64's ABI, at the end of the image and addressed by 64 bits. LLVM and the linker see only a few bytes of it; at
   the very end the section gets its real size and the file the bytes, so that only the page cache holds them. */
#include "constants.h"
#include "../cost.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ALIGNMENT = 64,
    STANDS_IN = 64 /* bytes of the section before it is filled */
};
#define MOST_TEXT ((uint64_t)1 << 30) /* bytes of constants in text, where a byte is several characters */
#define SECTION_LARGE 0x10000000      /* SHF_X86_64_LARGE */
static const char block_name[] = "constants.block", section_name[] = ".lrodata.constants";
/* The section's name in objects to be linked by GNU ld, which puts nothing after writable data. */
static const char linked_name[] = ".ldata.constants";

/* ---- MLIR */
static MlirAttribute text(Emit *e, Str s) { return mlirStringAttrGet(e->mlir, mlirStringRefCreate(s.at, s.n)); }
static void declare(Emit *e, Str name, MlirType type) {
    MlirBlock was = e->block;
    MlirRegion empty = mlirRegionCreate();
    e->block = mlirModuleGetBody(e->module);
    Attr a[4] = {{"sym_name", text(e, name)},
                 {"global_type", mlirTypeAttrGet(type)},
                 {"linkage", mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageExternal)},
                 {"constant", mlirUnitAttrGet(e->mlir)}};
    em_op(e, "llvm.mlir.global", &(Op){0, NULL, 0, NULL, 4, a, 1, &empty});
    e->block = was;
}
static Str small_name(Emit *e, Val v) { return str_format(e->arena, "constant.%u", v); }

static void constant_new(Emit *e, Val v) {
    Dim n = type_size(e->cx->types, val_type(e->cx, v));
    Constant c = {.v = v, .bytes = (uint64_t)n * dtype_bytes(val_array(e->cx, v)->dtype)};
    c.large = c.bytes >= LARGE_BYTES || e->small_bytes + c.bytes > MOST_SMALL;
    if (c.large) {
        if (e->large_bytes == 0) declare(e, str(block_name), mlirLLVMArrayTypeGet(e->i8, 0));
        c.offset = e->large_bytes;
        e->large_bytes += (c.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    } else {
        e->small_bytes += c.bytes;
        declare(e, small_name(e, v), mlirLLVMArrayTypeGet(e->i8, (unsigned)c.bytes));
    }
    push(e->arena, &e->constants, c);
}

uint32_t em_constant_number(Emit *e, Val v) {
    bool fresh;
    uint32_t id = intern(&e->constant_ids, &v, sizeof v, &fresh);
    if (fresh) constant_new(e, v);
    return id;
}
V em_constant(Emit *e, Val v) {
    uint32_t number = em_constant_number(e, v);
    const Constant *c = &e->constants.at[number];
    if (!c->large) return em_address(e, small_name(e, v));
    V block = em_address(e, str(block_name));
    return c->offset ? em_gep(e, block, em_i64(e, (int64_t)c->offset), e->i8) : block;
}

/* ---- LLVM */
static LLVMValueRef bytes_of(const Emit *e, LLVMModuleRef m, const Constant *c) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(LLVMGetModuleContext(m));
    return LLVMConstDataArray(byte, c->bytes ? val_info(e->cx, c->v)->data : "", c->bytes);
}
static void define(LLVMValueRef global, LLVMValueRef value, bool shared) {
    LLVMSetInitializer(global, value);
    LLVMSetLinkage(global, shared ? LLVMExternalLinkage : LLVMPrivateLinkage);
    LLVMSetAlignment(global, ALIGNMENT);
}
/* The block in text output: each constant, and the padding to the next. */
static LLVMValueRef whole_block(const Emit *e, LLVMModuleRef m) {
    LLVMContextRef cx = LLVMGetModuleContext(m);
    LLVMValueRef *parts = arena_new(e->arena, LLVMValueRef, 2 * (size_t)e->constants.n);
    unsigned n = 0;
    each(Constant, c, e->constants) {
        if (!c->large) continue;
        uint64_t left = -c->bytes % ALIGNMENT;
        parts[n++] = bytes_of(e, m, c);
        parts[n++] = LLVMConstNull(LLVMArrayType2(LLVMInt8TypeInContext(cx), left));
    }
    return LLVMConstStructInContext(cx, parts, n, true);
}
static const char *section_of(const Emit *e) { return e->for_ld ? linked_name : section_name; }
void constants_declare(Emit *e, LLVMModuleRef m) {
    if (!e->large_bytes) return;
    LLVMValueRef block = LLVMGetNamedGlobal(m, block_name);
    LLVMSetVisibility(block, LLVMHiddenVisibility);
    LLVMSetSection(block, section_of(e));
}
/* LLVM must not know the placeholder for the bytes, so the assembler defines it. */
static void define_block(Emit *e, LLVMModuleRef m, bool shared) {
    const char *global = shared ? str_format(e->arena, ".globl %s\n.hidden %s\n", block_name, block_name).at : "";
    Str text = str_format(e->arena,
                          ".section %s,\"al%s\",@progbits\n.balign %d\n%s%s:\n.zero %d\n"
                          ".type %s,@object\n.size %s, %d\n",
                          section_of(e), e->for_ld ? "w" : "", ALIGNMENT, global, block_name, STANDS_IN, block_name,
                          block_name, STANDS_IN);
    LLVMAppendModuleInlineAsm(m, text.at, text.n);
}
LLVMValueRef constants_address(Emit *e, LLVMModuleRef m, const Constant *c) {
    if (!c->large) return LLVMGetNamedGlobal(m, small_name(e, c->v).at);
    LLVMContextRef cx = LLVMGetModuleContext(m);
    LLVMValueRef offset = LLVMConstInt(LLVMInt64TypeInContext(cx), c->offset, 0);
    return LLVMConstGEP2(LLVMInt8TypeInContext(cx), LLVMGetNamedGlobal(m, block_name), &offset, 1);
}
bool constants_define(Emit *e, EmitKind kind, LLVMModuleRef m, bool shared) {
    each(Constant, c, e->constants)
        if (!c->large) define(LLVMGetNamedGlobal(m, small_name(e, c->v).at), bytes_of(e, m, c), shared);
    if (!e->large_bytes) return true;
    LLVMValueRef block = LLVMGetNamedGlobal(m, block_name);
    if (kind == EMIT_obj) return define_block(e, m, shared), true;
    if (e->large_bytes > MOST_TEXT)
        return diag_plain(e->cx->diags, "%" PRIu64 " bytes of constants are too many for text", e->large_bytes);
    LLVMValueRef data = whole_block(e, m), whole = LLVMAddGlobal(m, LLVMTypeOf(data), "");
    define(whole, data, false);
    LLVMSetGlobalConstant(whole, true);
    LLVMSetSection(whole, section_name);
    LLVMReplaceAllUsesWith(block, whole);
    LLVMDeleteGlobal(block);
    return true;
}

/* ---- the file */
typedef struct {
    int fd;
    uint64_t start; /* of the ELF file in the file, for a member of an archive */
    Elf64_Ehdr header;
    Elf64_Shdr section;
    uint64_t section_at; /* the offset of its header */
} Image;

static bool get(const Image *i, uint64_t at, void *to, size_t n) {
    return pread(i->fd, to, n, (off_t)(i->start + at)) == (ssize_t)n;
}
static bool put(const Image *i, uint64_t at, const void *from, uint64_t n) {
    enum { PIECE = 1 << 26 };
    for (const char *p = from; n;) {
        ssize_t k = pwrite(i->fd, p, n < PIECE ? n : PIECE, (off_t)(i->start + at));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k, at += (uint64_t)k, n -= (uint64_t)k;
    }
    return true;
}

/* The start of the last member of an archive, and the place of the size in its header. */
enum { AR_MAGIC = 8, AR_HEADER = 60, AR_SIZE = 48, AR_DIGITS = 10 };
static bool last_member(Image *i, uint64_t end) {
    uint64_t at = AR_MAGIC;
    for (char h[AR_HEADER + 1] = ""; at + AR_HEADER <= end;) {
        if (!get(i, at, h, AR_HEADER)) return false;
        uint64_t n = strtoull(h + AR_SIZE, NULL, 10), next = at + AR_HEADER + n + (n & 1);
        if (next >= end) break;
        at = next;
    }
    i->start = at + AR_HEADER;
    return true;
}

static bool find_section(Image *i) {
    if (!get(i, 0, &i->header, sizeof i->header)) return false;
    for (unsigned k = 0; k < i->header.e_shnum; k++) {
        i->section_at = i->header.e_shoff + k * sizeof i->section;
        if (!get(i, i->section_at, &i->section, sizeof i->section)) return false;
        if (i->section.sh_flags & SECTION_LARGE && i->section.sh_type == SHT_PROGBITS) return true;
    }
    return false;
}

/* The segment of a library that contains only the section, at the end of the image. */
static bool find_segment(const Image *i, Elf64_Phdr *found, uint64_t *found_at) {
    Elf64_Phdr p;
    bool last = false;
    for (unsigned k = 0; k < i->header.e_phnum; k++) {
        uint64_t at = i->header.e_phoff + k * sizeof p;
        if (!get(i, at, &p, sizeof p)) return false;
        if (p.p_type != PT_LOAD) continue;
        last = p.p_vaddr == i->section.sh_addr && p.p_memsz == i->section.sh_size;
        *found = p, *found_at = at;
    }
    return last;
}

/* Appends the block to the file, `at` in the image. */
static bool put_block(const Emit *e, const Image *i, uint64_t at) {
    each(Constant, c, e->constants)
        if (c->large && !put(i, at + c->offset, val_info(e->cx, c->v)->data, c->bytes)) return false;
    return ftruncate(i->fd, (off_t)(i->start + at + e->large_bytes)) == 0;
}

/* False with errno, which is 0 if the linker's output is not as expected. */
static bool fill(const Emit *e, EmitKind kind, Image *i, uint64_t end) {
    Elf64_Phdr segment = {.p_align = ALIGNMENT};
    uint64_t segment_at = 0;
    errno = 0;
    if (kind == EMIT_a && !last_member(i, end)) return false;
    if (!find_section(i)) return false;
    if (kind == EMIT_so && !find_segment(i, &segment, &segment_at)) return false;
    /* the block is the end of the section, at the same offset modulo pages in the file and in memory */
    uint64_t align = segment.p_align > ALIGNMENT ? segment.p_align : ALIGNMENT;
    uint64_t before = i->section.sh_size - STANDS_IN, at = end - i->start;
    at += (i->section.sh_addr - at) % align;
    i->section.sh_offset = segment.p_offset = at;
    i->section.sh_size = segment.p_filesz = segment.p_memsz = before + e->large_bytes;
    i->section.sh_flags &= ~(uint64_t)SHF_WRITE;
    segment.p_flags = PF_R;
    return put_block(e, i, at + before) && put(i, i->section_at, &i->section, sizeof i->section) &&
           (kind != EMIT_so || put(i, segment_at, &segment, sizeof segment));
}

static bool resize_member(const Emit *e, const Image *i) {
    char size[AR_DIGITS + 12];
    uint64_t n = i->section.sh_offset + i->section.sh_size;
    snprintf(size, sizeof size, "%-10" PRIu64, n);
    if (size[AR_DIGITS]) return diag_plain(e->cx->diags, "no archive holds %" PRIu64 " bytes", n);
    Image archive = {.fd = i->fd};
    return put(&archive, i->start - AR_HEADER + AR_SIZE, size, AR_DIGITS);
}

bool constants_fill(Emit *e, EmitKind kind, const Output *out) {
    if (!e->large_bytes) return true;
    Image i = {.fd = open(out->to, O_RDWR | O_CLOEXEC)};
    struct stat st;
    bool good = i.fd >= 0 && fstat(i.fd, &st) == 0 && fill(e, kind, &i, (uint64_t)st.st_size);
    if (!good && i.fd >= 0 && errno == 0)
        diag_plain(e->cx->diags, "'%s': this linker gives large constants no segment of their own; GNU ld does",
                   out->path);
    else if (!good)
        diag_plain(e->cx->diags, "cannot write '%s': %s", out->path, strerror(errno));
    good = good && (kind != EMIT_a || resize_member(e, &i));
    if (i.fd >= 0) close(i.fd);
    return good;
}
