/* What is new in sm_90: barriers in shared memory, copies of boxes of an array, products of a warpgroup. Copies and
   products are done when they are waited for, so that who forgets to wait reads what was there before. */
#ifndef PTX_BULK_H
#define PTX_BULK_H
#include "tensor.h"

enum { CHUNK = 16, MOST_COLUMNS = 256 };
/* In units of 16 bytes places of a row are exchanged by the number of the row, so that columns are in all banks. */
uint64_t swizzled(uint64_t address, uint32_t swizzle);

/* mbarrier.c; o: result, address, operand; kinds of set and arrive */
enum { MBARRIER_INIT, MBARRIER_INVAL };
enum { MBARRIER_ARRIVE, MBARRIER_BOTH, MBARRIER_EXPECT };
Run run_mbarrier_set, run_mbarrier_arrive, run_mbarrier_wait;
Run run_fence_mbarrier;
void mbarriers_fence(Warp *, uint32_t mask, bool others);          /* others: barriers that other threads began too */
uint32_t mbarrier_number(Warp *, uint32_t lane, uint64_t address); /* in the block */
uint32_t mbarrier_copy(Warp *, uint32_t lane, uint64_t address);   /* a copy is asked for: which phase waits for it */
void mbarrier_complete(Warp *, uint32_t lane, uint64_t address, uint32_t bytes, uint32_t phase); /* it is done */
void mbarriers_end(Block *);

/* bulk.c */
Run run_bulk, run_bulk_tensor, run_fence_async;
bool bulk_waits(const Block *, uint64_t barrier); /* is there a copy that it waits for? */
void bulk_finish(Warp *, uint64_t barrier);       /* copies that it waits for are done */
void bulk_end(Block *);                           /* all have been waited for */

/* wgmma.c */
typedef struct {
    uint32_t columns;
    Element a, b, d;
    bool registers; /* A is there */
    bool across[2]; /* neighbours in memory are rows of A, columns of B; else they are terms */
    bool negative[2];
} WgmmaShape;
uint32_t wgmma_encoded(const WgmmaShape *);
uint32_t wgmma_terms(const WgmmaShape *);
uint32_t wgmma_sums(const WgmmaShape *); /* registers of D */
Run run_wgmma, run_wgmma_fence, run_wgmma_commit, run_wgmma_wait;
void wgmma_end(Warp *);

/* products.c: what may be done while products are not done */
void product_begins(Warp *, const Product *);
void product_ends(Warp *, const Product *);
void products_fence(Warp *);
void products_reset(Warp *);
void products_end(Warp *);
uint32_t product_registers(const Product *); /* of its list: those of D and of A */

Form form_mbarrier, form_bulk, form_wgmma;

#endif
