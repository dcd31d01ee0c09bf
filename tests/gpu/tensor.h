/* Matrices in the registers of a warp. */
#ifndef PTX_TENSOR_H
#define PTX_TENSOR_H
#include "parse.h"
#include "machine.h"

typedef enum {
    ELEMENT_F16,
    ELEMENT_BF16,
    ELEMENT_TF32,
    ELEMENT_F32,
    ELEMENT_F64,
    ELEMENT_S8,
    ELEMENT_U8,
    ELEMENT_S4,
    ELEMENT_U4,
    ELEMENT_E4M3,
    ELEMENT_E5M2,
    ELEMENT_S32,
    ELEMENTS
} Element;
extern const struct ElementInfo {
    const char *name;
    uint32_t bits, register_bytes;
    bool integer;
} element_info[ELEMENTS];
Element element_of(Parser *, const Parts *, Str name); /* of that name */
/* The k-th element of a register of 32 or 64 bits. */
double element_value(Element, uint64_t bits, uint32_t k);

enum { MAX_M = 16, MAX_N = 8, MAX_K = 64 };
/* D = A B + C: M by K, K by 8, M by 8. */
typedef struct {
    uint32_t m, k;
    Element a, b, c, d;
} MmaShape;
uint32_t mma_encoded(MmaShape);
/* How many registers a lane has of each. */
uint32_t a_registers(const MmaShape *);
uint32_t b_registers(const MmaShape *);
uint32_t c_registers(const MmaShape *, Element);

/* Rows of A from the registers of a lane; the bits of a sum, rounded. */
void mma_rows(const Warp *, const MmaShape *, const uint32_t *slots, double a[MAX_M][MAX_K]);
uint64_t mma_bits(Element, double sum);

Run run_mma, run_ldmatrix, run_stmatrix, run_cp_async, run_cp_commit, run_cp_wait;
void copies_end(Warp *);                /* all have been waited for */
void whole_warp(Warp *, uint32_t mask); /* all lanes are here */

Form form_mma, form_ldmatrix, form_stmatrix, form_cp;

#endif
