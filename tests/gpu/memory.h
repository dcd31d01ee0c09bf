/* Device memory, and the memory of a block: where an instruction's lanes read and write, and whether they may. */
#ifndef PTX_MEMORY_H
#define PTX_MEMORY_H
#include "machine.h"

/* Who touched a word or a byte last; see race.c. */
typedef struct {
    uint32_t write_epoch, read_epoch, others_epoch; /* others: reads before the reader's, by another block */
    uint16_t writer, reader, write_syncs, read_syncs;
} Touched;
typedef struct {
    Touched *words, *bytes; /* bytes: of words that are touched in part */
    uint64_t size;          /* bytes described */
} Shadow;
bool shadow_make(Shadow *, uint64_t bytes); /* for at least so many; false: no memory */
void shadow_drop(Shadow *);                 /* it is kept for others */
void shadow_forget(Shadow *);
void shadow_reset(void); /* all are begun anew */

typedef struct {
    uint64_t at; /* on the host */
    uint64_t bytes;
    int device;
    uint8_t *written; /* a byte for each */
    Shadow shadow;
} Area;
Area *area_find(uint64_t device, uint64_t bytes); /* NULL: not all of it is in one */
Area *area_here(uint64_t device, uint64_t bytes); /* the same; NULL too: it is of another device than ptx_device */

/* The address of a place in shared memory, with the rank of a block of the cluster. */
enum { RANK_BYTES = 1 << 24 };
typedef enum { TOUCH_NOT, TOUCH_READ, TOUCH_WRITE, TOUCH_ATOMIC_READ, TOUCH_ATOMIC_WRITE } Touch;
/* The addresses of an operand with its offset; `room` is there to hold them. */
const uint64_t *addresses(const Warp *, const Ins *, uint32_t slot, int64_t offset, uint64_t room[LANES]);
/* Where `bytes` at each lane's address are; ends the launch if the program may not touch them so. True if all lanes
   are there and their places follow each other. */
bool places(Warp *, Space, uint32_t mask, const uint64_t *address, uint32_t bytes, Touch, uint8_t *place[LANES]);
uint8_t *place_of(Warp *, Space, uint32_t lane, uint64_t address, uint32_t bytes, Touch);
/* These bytes are touched by those lanes, at an address each: races are looked for. */
void touch_shared(Warp *, uint32_t mask, const uint64_t *address, uint32_t bytes, Touch);
void touch_global(Warp *, uint32_t mask, Area *, const uint64_t *address, uint32_t bytes, Touch);
void touch_asked(Warp *, uint32_t mask, const uint64_t *at, uint32_t bytes); /* in shared memory */
void touch_copied(Warp *, uint32_t lane, uint64_t at, uint32_t bytes);
void touch_begin(Launch *); /* before its first block */
void touch_end(void);
void touch_block(Block *);
void touch_barrier(void);
void count_conflicts(uint32_t mask, const uint64_t *address, uint32_t bytes);

extern Run *const load_runs[4][4][2]; /* by the logarithms of bytes and width, sign extension; NULL: none */
extern Run *const store_runs[4][4];
Run *atomic_run(Str operation, Str type); /* NULL: none */

#endif
