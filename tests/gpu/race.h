/* The order of what threads do: time that all threads of a block share, and vector clocks of blocks in which barriers
   in memory or products of warpgroups order threads (clocks.c, touched.c). */
#ifndef PTX_RACE_H
#define PTX_RACE_H
#include "memory.h"

enum { MOST_MBARRIERS = 64, CLOCKS_NAME = 64 };
#define IN_FLIGHT UINT32_MAX
/* Now; and the end of the last barrier of all threads: what was done before it is ordered before all that comes. */
extern uint32_t race_epoch, race_floor;
extern uint32_t race_phase; /* the end of the last barrier, or phase of one in memory */
extern uint32_t race_as;    /* who touches global memory, if it is a copy and no thread: 1 + its number */

/* ---- vector clocks. Who does something is a number: a thread, behind these the copies that a mbarrier waits for, and
   behind these the products of a warp. */
extern bool clocks_on;
/* What is ordered before an access: row `seen`; what of it a fence has shown to copies and products: row `shown`. */
typedef struct {
    const uint32_t *seen, *shown;
    uint32_t first, n; /* the threads that do it */
} View;
bool clocks_begin(Launch *); /* false: no memory */
void clocks_end(void);
uint32_t clocks_copies(uint32_t mbarrier), clocks_products(uint32_t warp);   /* their numbers */
const char *clocks_name(uint32_t by, uint32_t when, char text[CLOCKS_NAME]); /* for messages */
View clocks_view(const Warp *, uint32_t lane);
View clocks_warp_view(const Warp *); /* of all lanes of the warp together */
bool clocks_ordered(const View *, uint32_t by, uint32_t when);
bool clocks_shown(const View *, uint32_t by, uint32_t when);
void clocks_fence(const Warp *, uint32_t mask);
void clocks_warp_sync(const Warp *, uint32_t mask);
/* Of a barrier of the block. */
void clocks_meet(const Warp *, uint32_t mask, uint32_t barrier);
void clocks_leave(const Warp *, uint32_t mask, uint32_t barrier);
void clocks_met(uint32_t barrier, bool all); /* it is complete; all: all threads wait at it */
/* Of a mbarrier: a new one, an arrival, copies that are done, the end of a phase, and who has waited for it. */
void clocks_open(uint32_t mbarrier);
void clocks_arrive(const Warp *, uint32_t lane, uint32_t mbarrier);
void clocks_copied(uint32_t mbarrier);
void clocks_phase(uint32_t mbarrier);
void clocks_wait(const Warp *, uint32_t lane, uint32_t mbarrier);
void clocks_products_done(const Warp *, uint32_t when);

/* ---- touched.c: shared memory of such blocks */
bool touched_begin(Launch *);
void touched_block(const Block *);
void touched_end(void);
void touched_access(Warp *, uint32_t mask, const uint64_t *at, uint32_t bytes, Touch);
void touched_asked(Warp *, uint32_t mask, const uint64_t *at, uint32_t bytes);
void touched_copied(Warp *, uint32_t lane, uint64_t at, uint32_t bytes);
/* A copy that a mbarrier waits for is to write, a product to read. */
void touched_box(Warp *, uint32_t lane, uint32_t mbarrier, uint64_t at, uint32_t bytes);
void touched_factor(Warp *, const View *, uint64_t at, uint32_t bytes);

#endif
