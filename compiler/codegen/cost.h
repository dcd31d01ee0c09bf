/* Costs and thresholds of plans, kernels and the host's code. Costs are estimates, in additions of one element. */
#ifndef JAXCC_COST_H
#define JAXCC_COST_H

/* ---- fusion: what one element costs, and what is computed wherever it is used */
enum {
    COSTLY_COST = 4,              /* a primitive that is COSTLY */
    STDLIB_COST = 20,             /* a program of stdlib/ */
    STEP_COST = 400,              /* a step that costs more takes no further members */
    PROGRAM_COST = STEP_COST / 2, /* a program with loops */
    MOST_COST = 100000,           /* costs are not counted further */
    VIRTUAL_COST = 4,             /* as much is computed wherever it is used, if it reads one value */
    VIRTUAL_DEPTH = 64,           /* equations that evaluating a virtual value may recurse through */
    GATHER_COST = 12,             /* a gather of more is computed by a step: both operands are evaluated, 2^n */
    SCATTER_COST = 4,             /* one update */
    STEP_READS = 128,             /* a step that reads more values of others takes no further members */
    READER_HOPS = 6,         /* from an equation to those that read its result, to find the step they wait for, … */
    READER_OPERANDS = 4,     /* … if they have no more operands */
    JOIN_TRIES = 6,          /* the latest steps that an equation tries to join */
    MOST_PIECES = 64,        /* of a virtual concatenation */
    STEP_PIECES = 128,       /* pieces that one step writes */
    PIECE_TRIES = 16,        /* the latest steps that a piece tries to join */
    MOST_BESIDE = 16,        /* pieces whose elements lie beside each other: one step writes them */
    SMALL_SIZE = 4096,       /* elements of a small array, and of all pieces that one step writes */
    MOVED_SHARE = 4,         /* a value of which less than 1/4 is moved is not copied for that */
    REPEATED_BYTES = 1 << 22 /* nor a larger one that repeats what it is computed from: 2.0 ms instead of 2.3 */
};

/* ---- schedule: loops of a step */
enum {
    SPILL_COST = 12,     /* values of at least this are kept for a later stage, not computed again */
    ROW_BYTES = 16384,   /* of a kernel's scratch rows, which are to stay in the first cache */
    UNROLLED_TURNS = 4,  /* a loop that selects the operand of a concatenation is unrolled up to this */
    TILE_COST = 16,      /* elements that cost more are not read in square tiles */
    TILE_TURNS = 16,     /* the shortest loop that is done in tiles */
    LANE_TURNS = 8,      /* a shorter loop suits lanes less */
    COPY_COST = 3,       /* … but rows for which no more is computed, … */
    COPIED_TURNS = 4,    /* … if they are at least so long or lie apart: joining rows of 4 in 56 us, not 228 */
    ROW_COST = 20,       /* a cheaper body has lanes along its rows: 18 operations on rows of 29 in 2.5 ms, not 5.0 */
    ROW_ACCESSES = 2,    /* contiguous accesses that may be apart instead: with 6 rows of 5 took 8.3 ms, not 5.2 */
    MASK_COST = 36,      /* of a vector with a mask where masks are words: some 50 cycles on AMD's first Zen, … */
    APART_COST = 6,      /* … of reading or writing one by elements: tanh of rows of 13 in 1.7 ns an element, not 3.9 */
    SHORT_TERMS = 4,     /* vectors: sums of fewer that do not fill them */
    ARG_VECTORS = 8,     /* of terms: argmax of rows of 10 in 4.2 ns, not 11, of 33 in 16, not 27, … */
    EXTREME_VECTORS = 2, /* … and max of rows of 10 in 2.0 ns, not 4.0; sums are as fast */
    TERMS_EACH = 8,      /* reads of terms for one of their sum, at least: two sums of each row in 18 us, not 640 */
    ROW_TERMS = 2,       /* terms whose sum costs as much as an operation on it without lanes */
    JAM_TURNS = 8,       /* the shortest loop of which several iterations are done at once */
    MOST_TURNS = 64,     /* iterations of reduced loops that are written out, … */
    WRITTEN_COST = 128,  /* … and what they cost: a softmax of 6 compiles in 58 ms instead of 253 */
    APART_TURNS = 16,    /* … if lanes are apart: sums of 40 neighbours of columns compile in 0.2 s, not 17 */
    MOST_ROWS = 48,      /* iterations of a single loop: longer sums are two chains, which read far apart */
    PARTS_FROM = 500000, /* operations from which a full reduction is done in parts, … */
    PART_COST = 1 << 17, /* … of so many each, … */
    PART_LANES = 65536,  /* … elements of a part at most, … */
    PART_STEP = 1024     /* … and a multiple of so many, if there is but one loop */
};

/* ---- what a scalar predicate decides */
enum {
    UNSWITCH_COST = 2, /* what it saves if it is tested before the loops of a kernel, at least: two arrays of which one
                          is read, in 5.6 us, not 8.5 */
    UNSWITCH_PART = 8, /* and of all that the kernel computes at least 1/8 */
    CASE_COST = 16 /* what it saves if it is tested in each turn of a loop on elements: 100 turns in 62 us, not 440 */
};

/* ---- edges of padding and of concatenations */
enum {
    MOST_EDGES = 16,       /* a step with more has one body, which tests for all */
    EDGES_APART = 1 << 19, /* elements from which rows are reduced with what is read across edges in them: storing and
                              reading 500 takes 0.1 us, masks 0.7 */
    EDGE_SIZE = 32,        /* a step of fewer elements has one body: rolling 1021 bytes by one takes 0.13 us, not 2.3 */
    EDGE_LANES = 16,       /* a vector is rarely inside a shorter row */
    CUT_LANES = 128,       /* the longest row that is written out in pieces from edge to edge, … */
    CUT_COST = 16,         /* … if what it computes costs no more: 15000 rows of 20 padded to 22 in 46 us, not 170 */
    PIECES_COST = 512,     /* of all vectors of a row with edges: 64 rows of 64 of the game of life in 3.5 us, not 13 */
    UNMASKED_COST = 256, /* of all pieces, if vectors cannot be masked: 64 rows of 64 bytes rolled in 1.0 us, not 4.1 */
    EDGE_PART = 8        /* of a concatenation, the most that may lie outside of its longest operand */
};

/* ---- devices */
enum {
    SCATTER_FEW = 32,        /* updates: so few are done in order, if the order matters */
    SHARED_PLACES = 4096,    /* elements of an array that blocks have copies of, if there are so many updates … */
    SHARED_UPDATES = 16384,  /* … that each block does as many */
    CLAIMS_EACH = 16,        /* places for each position, at most, that are worth an array of claims */
    SORT_TILE = 4096,        /* elements that a block sorts in shared memory */
    SORT_LEAST = 32,         /* fewer are sorted as so many; threads */
    SORT_EACH = 8,           /* elements of a thread; keys of at most 32 bits alone: … */
    SORT_EACH_ALONE = 32,    /* … if rows are tiles, so that a warp sorts 1024, … */
    SORT_THREADS = 768,      /* … of at most 80 registers for each of so many threads of a multiprocessor, … */
    SORT_SHORT_ROWS = 128,   /* threads of a block with several short rows */
    SORT_EACH_LONG = 16,     /* … or by digits, in larger tiles, … */
    SORT_LONG = 1 << 21,     /* … of rows that are as long */
    SORT_DIGIT = 8,          /* bits of the keys by which a pass sorts long rows */
    SORT_BLOCKS = 2,         /* at once on a multiprocessor: 64 registers for each of 512 threads */
    SORT_TILES = 512,        /* tiles of a row from which more threads add up what they have of a digit: … */
    COUNTING_THREADS = 1024, /* … all that a block may have */
    SORT_SORTED = 60,        /* bytes that memory moves while a key and its place are sorted in a tile, … */
    SORT_SORTED_ALONE = 26,  /* … a key of at most 32 bits alone, … */
    SORT_MERGED = 28,        /* … is merged, 9 instructions of a warp, … */
    SORT_MOVED = 15,         /* … or goes through a pass, 5, … */
    SORT_LAUNCH = 1 << 22,   /* … and while a kernel begins */
    SLOT_PART = 256,   /* updates of one place that a thread does, one after the other, if others can do the rest … */
    SLOTS_AT_ONCE = 4, /* … which are read at the same time */
    SLOT_BLOCKS = 4,   /* at once on a multiprocessor: with fewer than 52 registers ptxas lets a read wait for sums */
    SLOTS_EACH = 32    /* updates of which a thread does those of the places that begin there: 1 M rows of 512 bytes for
                          50,000 places in 150 us, not 175 */
};

/* ---- reports: a nominal machine. A thread of a CPU: its clock, and bytes per ns from the nearest caches, the last one
   and memory, as measured on one of Zen 4; a GPU: operations and bytes per ns, as an H100 of NVIDIA's data sheet. */
enum {
    NOMINAL_MHZ = 3500,
    CACHE_BYTES = 1 << 20,
    CACHE_RATE = 118,
    LAST_CACHE_BYTES = 1 << 24,
    LAST_CACHE_RATE = 93,
    MEMORY_RATE = 16,
    DEVICE_OPERATIONS = 67000,
    DEVICE_PRODUCTS = 990000, /* on tensor cores, of 16-bit numbers */
    DEVICE_RATE = 3350,
    LAUNCH_NS = 2500
};

/* ---- vectors: what the target decides for a step */
enum {
    VECTORS = 4,         /* vectors in one iteration */
    MANY_STORES = 12,    /* a body that stores so many values, which are live together, has half as many vectors, … */
    LONG_COST = 60,      /* … and so has a longer one, … */
    LONG_STORES = 4,     /* … if it stores so many. Others wait less with four: normal numbers in 3.1 ms, not 4.3 */
    HELD_TIMES = 2,      /* how often registers are filled by results that are best computed as one vector of each */
    CACHE_LINE = 64,     /* bytes of a line of the first cache, … */
    CACHE_PAGE = 4096,   /* … of which those as far apart have one place, … */
    CACHE_WAYS = 8,      /* … where so many stay */
    COLUMN_VECTORS = 16, /* in one iteration of a sum of columns … */
    COLUMN_COST = 8,     /* … whose body is no longer than this: 4096 × 512 f32 in 388 us instead of 576 … */
    FAR_BYTES = 1 << 20, /* … or that reads so much in several stages: softmax of 2048 columns in 5.5 ms, not 10 */
    LINE_VECTORS = 8,    /* in one iteration of sums of columns that are done in lines: … */
    LINE_LEAST = 16,     /* … there are as many columns, … */
    LINE_MEMORY = 8,     /* … and their accumulators take an eighth of what is read: 2048 × 2048 in 0.5 ms, not 1.9 */
    LINE_UNITS = 4,    /* … and so many units where bodies are long: softmax of 256 columns in 425 us by two, not 839 */
    LINE_CHUNK = 4096, /* columns whose accumulators stay in the first caches */
    COSTLY_TURNS = 16, /* as many vectors are done several at a time: 15384 tanh in 23.0 us, not 26.3 */
    SHORT_EXTENT = 128, /* fewer are done by single vectors where masks are slow: a pad to 30 in 39 us, not 84 */
    STRIP_BYTES = 256,  /* that a tile writes to a row at a time: a transpose of 2048 rows of 2048 in 4.3 ms, not 7.5 */
    LOOP_VALUES = 8,    /* values of a member's loop that four vectors hold in registers */
    CROWD_COST = 11,   /* a loop whose operations cost 11 / 4 of those on its longest path waits for few of them: two */
    CROWD_OF = 4,      /* … vectors are enough: 200 steps of Runge-Kutta for 256 Lorenz systems in 79 us, not 109 */
    WIDEST_TAIL = 16,  /* lanes of the masked remainder of an unknown extent */
    LOOP_BLOCK = 256,  /* elements of a unit, if the outermost loop has the lanes */
    JAM = 4,           /* iterations of a kept loop that are done at once */
    POSITIONS = 4,     /* … and positions of a scatter of single elements: a million sums in 0.98 ms, not 1.1 */
    WINDOW_BLOCK = 64, /* elements of a scatter's windows in a unit */
    PREFIX_REST = 4,   /* its part that is done one by one where masks are slow: of rows of 20 in 181 us, not 222 */
    PREFIX_BYTES = 64, /* of a vector of prefixes, on every machine */
    PREFIX_COST = 4,   /* of an element, in operations: … */
    PREFIX_PART_COST = 1 << 14, /* … a long row, which threads share, is divided into parts of so many, … */
    PREFIX_PART_STEP = 64,      /* … a multiple of so many elements … */
    PREFIX_PARTS = 256          /* … and no more parts than this: each begins with what all those before it leave */
};

/* ---- reads ahead, on CPUs */
enum {
    AHEAD_BYTES = 8192,    /* from what is read to what is asked for … */
    AHEAD_LEAST = 2 << 20, /* … in arrays of so much, … */
    AHEAD_RUN = 1 << 15,   /* … so much of which is read in order: argmax of 16 MB in 570 us, not 1270; … */
    AHEAD_COST = 16        /* … a body of less waits for memory, unless the last cache has all */
};

/* ---- sums: terms that are added in one register before its sum is added to a wide form. Adding n uniform terms in f32
   has an error of 2.4e-8·√(n/3). */
enum {
    OWN_TURNS = 48,     /* each lane is a sum of its own: the worst of a million has five times that error */
    SHARED_TURNS = 256, /* lanes are added up in the end, which averages their errors */
    PREFIX_TURNS = 16,  /* of a prefix sum along an axis without lanes */
    SHARED_TERMS = 256, /* matrix products: lanes are added up in the end */
    OWN_TERMS = 128,    /* few registers are folded */
    FULL_TERMS = 512,   /* all registers are folded, which pays only for more than LONG_SUM terms */
    LONG_SUM = 2048,
    DEVICE_TERMS =
        4096,           /* on a device, where folding every 512 terms takes 30 % of an f32 product's time: the wide … */
    DEVICE_SUM = 8192,  /* … forms are in memory, and their addresses take registers; only for more than these */
    SUMMED_BLOCKS = 64, /* more partial sums than this are added in wide forms */
    BLOCK_STEPS = 8     /* blocks are multiples of what the innermost loop does at once */
};

/* ---- matrix products: how operands are read */
enum {
    DOT_FEW = 4,           /* rows that are read along the contraction */
    DOT_SHORT = 4,         /* so few columns do not suit lanes */
    DOT_NARROW = 8,        /* fewer columns than this swap roles with more rows */
    DOT_OFTEN = 16,        /* rows from which B, of another type, is converted once */
    DOT_WIDE = 64,         /* columns from which A, of another type, is converted once */
    DOT_LONG = 16,         /* terms, or columns, that are long enough for lanes */
    DOT_IDLE = 8,          /* an eighth of the columns: as many idle lanes are worth swapping roles, … */
    DOT_MANY = 512,        /* … of more columns … */
    DOT_LASTING = 512,     /* … and more terms */
    DOT_SQUARE = 4,        /* terms of a B that is packed by transposing */
    DOT_BESIDE = 4,        /* elements between terms from which rows are to lie beside each other */
    DOT_APART = 16,        /* elements between terms that do not lie apart */
    PANEL_BYTES = 1 << 15, /* a smaller B stays in the first cache as it is */
    FEW_TILES = 8          /* rows that are one tile: B is not copied into panels for them */
};
/* ---- matrix products: tiles and units */
enum {
    DOT_FULL = 6,             /* rows that fill a tile */
    MOST_DOT_LANES = 256,     /* of a tile */
    DOT_SUMS = 8,             /* sums in registers: a smaller tile has several sets of partial sums */
    DOT_SPILL_COST = 24,      /* a longer epilogue is a loop over the rows of a tile */
    PACK_BYTES = 1 << 18,     /* a larger B is packed, or read in blocks of columns */
    BLOCK_BYTES = 1 << 19,    /* of a unit's packed columns with all terms */
    TERMS_BYTES = 1 << 18,    /* of a unit's packed columns with a block of terms */
    TOGETHER_BYTES = 1 << 18, /* of the sums of all units, if a thread's are computed as one */
    NEAR_BYTES = 1 << 9,      /* between terms of a B that need not be packed for … */
    NEAR_ROWS = 32,           /* … so few rows: 100 × 3000 by 3000 × 100 in 0.98 ms, not 1.2 */
    INNER_TERMS = 1 << 16,    /* terms of a unit whose lanes run along the contraction … */
    INNER_COLUMNS = 1024,     /* … of at most so many columns … */
    UNKNOWN_COLUMNS = 32,     /* … or of these, if the terms are not known */
    WIDE_BLOCK = 512,         /* columns of a unit that reads a large B in place */
    UNIT_TILES = 8,           /* tiles of rows in a unit that reads a small B in place */
    UNIT_SHARE = 4,           /* a unit is at most a quarter of the columns or of the tiles of rows */
    LINE_TERMS = 8,           /* rows read side by side, of an array of which columns are summed or of B … */
    LINE_BYTES = 1 << 22,     /* … if the array is as large; … */
    LINE_COLUMNS = 1024,      /* … so many columns at a time, … */
    LINE_SHARE = 8,           /* … of B an eighth if that is more: 4 × 2048 by 2048 × 2048 in 0.9 ms, not 2.7 */
    LINE_ROW = 3 << 20,   /* bytes of B from which this is done for one row: 0.5 ms, not 0.8; 1000 × 1000 in 122 us,
                              not 167; in the cache long sums are better */
    TERM_BLOCK = 64,      /* terms of a block with few rows, of one array or of many … */
    LONG_BLOCK = 256,     /* … and with more */
    MANY_ROWS = 2048,     /* more rows are not done in blocks of terms */
    FEW_ROWS = 128,       /* too few to pack a large B for */
    MOST_PACKED = 1024,   /* terms of a tile's rows that are packed: they are to stay in the first cache */
    ROW_TILES = 8,        /* tiles whose rows are packed at once */
    ROW_PANELS = 4,       /* the fewest tiles in a unit's columns for which rows are packed */
    TERMS_AT_ONCE = 4,    /* terms in one iteration of the innermost loop, … */
    REMAINDER_SHARE = 8,  /* … but one for an eighth of the rows or columns, or less, that are no whole tile, … */
    TERMS_MEETING = 1,    /* … or in one that reads elements for several rows: a toeplitz of 256 in 359 us, not 965 */
    TURNS_WRITTEN_OUT = 2 /* a known number of so few iterations is no loop */
};
/* ---- matrix products on a device */
enum {
    TILE_LONG = 128, /* rows or columns of a tile, */
    TILE_WIDE = 256, /* columns for tensor cores that have enough to do: it reads a quarter less for each product, */
    TILE_LEAST = 64, /* of elements of more than TILE_WORD bytes, or if the tiles were too few, */
    MMA_SHORT = 32,  /* if there are so few, for tensor cores, */
    TILE_SHORT = 16, /* or not; also if sums are too short for parts: 64 x 1024 of 256 terms in 7 us, not 11 */
    TILE_WORD = 4,
    ENOUGH_TILES = 128,    /* as many blocks keep a device busy */
    TILE_RUN = 4,          /* neighbouring elements of the result that a thread finishes at once: a run … */
    TILE_RUN_COST = 160,   /* … if that costs no more, … */
    FINISH_RUNS = 4,       /* … of which so many leave together */
    TILE_BAND = 8,         /* rows of tiles that are computed together, … */
    WIDE_BAND = 16,        /* … of wide ones, so that those of 132 multiprocessors are about square */
    TILE_TERMS = 16,       /* terms that are in shared memory at a time, */
    LONG_TERMS = 8,        /* of a tile that is long both ways, */
    MMA_BYTES = 64,        /* bytes of a row's terms for tensor cores */
    MMA_TURNS = 3,         /* as many times those are there: the next ones are copied meanwhile … */
    STREAM_TILES = 256,    /* twice as many tiles if they are short one way, … */
    STREAM_BYTES = 128,    /* … of as many bytes of a row's terms, … */
    STREAM_TURNS = 5,      /* … more often: 64 KB are on the way to a multiprocessor; 16 took twice as long */
    ROOM_BYTES = 99 << 10, /* shared memory of a block on any GPU: sm_86, sm_89 and sm_120 run code for others too */
    GROUP_TURNS = 4,       /* … and with warpgroups the last ones are still multiplied */
    RING_TURNS = 6,        /* the same for terms that come as boxes, if they have … */
    RING_BYTES = 96 << 10, /* … no more bytes, so that there is room for TILE_BLOCKS blocks */
    WIDE_TURNS = 4,        /* of a wide tile, which is alone on its multiprocessor */
    PART_TERMS = 128,      /* of few tiles each adds up at least so many terms, in parts that are combined: of 512
                              terms an MLP of 64 rows took 61 us, not 24 */
    TILE_OFTEN = 256,      /* elements of the other operand for which one is computed once, not wherever it is read */
    TILE_BLOCKS = 2        /* at once on a multiprocessor: 128 registers for each of 256 threads */
};

/* ---- softmax(q · k) · v on a device: a block has a tile of the rows of q and streams tiles of the keys */
enum {
    ATTENTION_FEW = 16,          /* fewer rows are done by three kernels, which divide the keys too */
    ATTENTION_SHORT = 256,       /* so few keys are done by few blocks … */
    ATTENTION_BLOCKS = 32,       /* … and more by at least so many; else three kernels divide them among more blocks */
    ATTENTION_COLUMNS = 256,     /* of v, at most, for tensor cores; half as many else */
    ATTENTION_BYTES = 99 * 1024, /* of shared memory that every GPU has */
    HELD_LEAST = 32,             /* with more rows scores stay in registers, if tensor cores do both products: … */
    HELD_ROWS = 128,             /* … rows … */
    HELD_KEYS = 128 /* … and keys of a tile: heads of 64 in 156 us, not 178; half as many if that is too much memory, or
                       if scores are evaluated one by one: with a causal mask in 193 us, not 216 */
};

/* ---- GPUs: how a step is divided among blocks and threads */
enum {
    BLOCK_THREADS = 256,   /* of a block, if there is enough for it to do */
    MOST_BLOCKS = 1 << 30, /* of a grid */
    SHORT_ROW = 12,  /* no more elements of a reduced lane loop, or of prefixes, are done by one thread (sums of rows
                               of 16: 266 us, so 153; of 12: 135, with more threads 196); … */
    SHORT_AGAIN = 8, /* … if several stages read them, so many (softmax of rows of 10: 529 us, so 256) */
    LEAST_GROUP = 8, /* a longer one is shared by at least so many threads, … */
    ROW_ITEMS = 8,   /* … each of which has so many elements, … */
    WARP_ROW = 1024, /* … which are a warp for so many elements … */
    LEAST_WARP_ROWS = 2048, /* … of at least so many rows */
    APART_BLOCKS = 128,     /* blocks with rows of their own that leave much of a GPU idle, … */
    APART_TERMS = 1 << 16,  /* … if each has so many terms in all: 12 us at 20 GB/s, where a kernel begins in 3 … */
    APART_COLUMNS = 32,     /* … of so many columns */
    HELD_WORDS = 32,        /* of a row that a thread has in registers for several stages … */
    HELD_EACH = 8,          /* … or half as many, if it can be more threads and there are many rows … */
    HELD_THREADS = 1024,    /* … at most, of which each may have 64 registers … */
    HELD_TWICE = 512,       /* … or so many, as two blocks on a multiprocessor, for at least … */
    HELD_BLOCKS = 528,      /* … so many blocks, if these have room for the rest of their rows … */
    HELD_ROOM = 112 << 10,  /* … in so many bytes of shared memory: logsumexp of 32000 in 235 us, not 290; … */
    HELD_NEAR = 16,         /* … so many words are in registers then, if there is room for the others */
    HELD_CLUSTER = 8,       /* the most blocks that share a row: what all GPUs with clusters have */
    CLUSTER_TERMS = 500000, /* f32 that fit into registers and shared memory of a cluster */
    HELD_SCRATCH = 1 << 10, /* bytes of shared memory for combining what threads have, of a reduction */
    HELD_COST = 4096,       /* … and what is written out for all of its elements */
    HELD_TURNS = 2,         /* runs in one iteration of the loop over the rest of a long row in shared memory … */
    AGAIN_TURNS = 4,        /* … or in memory */
    AGAIN_COST = 48,       /* in the time in which memory takes 4 bytes and gives them back so much is computed again */
    SHARED_ROWS = 32768,   /* bytes of the scratch rows of a block with several */
    DEVICE_ALIGN = 16,     /* bytes of the widest access; every array and buffer begins at a multiple of them */
    RUN_COST = 640,        /* the most that a thread does at once for such accesses … */
    RUN_POINTS = 1 << 14,  /* … of at least so many elements */
    SECTOR_BYTES = 32,     /* that memory gives at once: a run of accesses that are apart along the lane loop … */
    MOST_ACROSS = 32,      /* … and its most elements */
    MOST_RUN_ROWS = 4,     /* … of so many rows, if these read elements in common, … */
    RUN_ROWS_COST = 256,   /* … and all that costs no more */
    ROW_READS = 16,        /* places of an element that are compared for it */
    CROSSED_BYTES = 256,   /* of a row of a tile of elements that are apart along the lane loop, … */
    CROSSED_SIDE = 128,    /* … no more than so many of them, … */
    CROSSED_WIDEST = 8,    /* … each of so many bytes at most; … */
    CROSSED_TILES = 32,    /* … with fewer tiles threads read them from memory */
    RUN_TURNS = 4,         /* so many runs are in flight in a thread … */
    CHEAP_RUN = 64,        /* … if what it does costs no more than this … */
    RUN_THREADS = 1 << 17, /* … and there are still so many threads */
    GATHERED_ROWS = 4,     /* of which a thread has a run each, if they are read at computed places */
    PARTS_READ = 4,        /* parts of a sum that a thread reads at once, … */
    TERMS_READ = 8,        /* … or terms, … */
    TERMS_HELD = 16,       /* … of all its sums no more than so many, for which 64 registers are enough, … */
    TERMS_COST = 160,      /* … and the most that it does for them */
    WINDOW_TERMS = 64,     /* the most of neighbouring windows that a thread adds up */
    SCAN_TURNS = 16,       /* of a program's loop that are done at once, … */
    SCAN_READS = 32,       /* … with what they read first: 1000 turns of 65536 threads in 136 us, not 450 */
    PREFIX_TURN = 16,      /* elements of a row that a thread has at a time where threads share it, … */
    PREFIX_RUN = 4,        /* … of which so many are neighbours if accesses are not wide and combining takes long */
    PREFIX_ROWS = 4,       /* rows of a thread that lie beside each other, … */
    PREFIX_AHEAD = 8,      /* … of each of which it reads so many elements at once; … */
    PREFIX_THREADS = 1 << 16, /* … as many threads are enough for that */
    PREFIX_HELD = 64,         /* elements of which no thread has more: */
    PREFIX_FEW = 32,          /* words of them and of what is before runs for which 64 registers are enough, … */
    PREFIX_WORDS = 80,        /* … and 128 */
    PREFIX_LONGER = 4,        /* times a turn is a part that stays in registers: 2^26 f32 in 171 us, not 362, … */
    MOST_RUNS = 16,           /* … of no more runs, … */
    ENOUGH_PARTS = 264,       /* … if there are still so many parts: two blocks for each multiprocessor */
    PARTS_LEFT = 8192,        /* parts of which each reads what all before it leave; of more … */
    COLUMN_PARTS_LEFT = 128,  /* … or of columns, whose parts are shorter, … */
    PARTS_GROUP = 64,         /* … what groups of so many leave, … */
    MOST_GROUPS = 4,          /* … for so many times as many groups as parts */
    PREFIX_PART = 16          /* bytes of what a part of prefixes leaves */
};
/* Sums of terms that lie beside those of other sums: columns. */
enum {
    MOST_COLUMNS = 1 << 16, /* from so many on each is done by one thread */
    LEAST_COLUMNS = 8,      /* of a block */
    CHUNK_SUMS = 8,        /* with more sums at once a thread does a column, as they would not fit into shared memory */
    LONG_COLUMN = 64,      /* iterations of the outermost loop from which the threads of a block share it … */
    VERY_LONG_COLUMN = 256 /* … also if the number of columns is not known */
};
/* Sums and prefixes are done in parts if there are fewer rows or blocks than `rows`, so that all of the GPU has work;
   a part has at least `part` elements, more if there would be too many parts, which are combined by one block. */
enum {
    BLOCK_ROWS = 512, /* a block does a row, or columns … */
    BLOCK_PART = 4096,
    BLOCK_PARTS = 1024,
    COLUMN_PART = 512,
    COLUMN_PARTS = 512,
    COLUMN_BLOCKS = 1024, /* enough for 132 multiprocessors: each has 4 at once, of 64 registers a thread */
    COLUMN_SHORTER = 4,   /* parts may be so much shorter for them */
    THREAD_PART = 64,     /* … or a thread, of fewer rows than PREFIX_THREADS */
    THREAD_PARTS = 512
};

/* ---- what is a function of its own in a long module: programs of stdlib/, loads of columns, sums of products */
enum {
    STDLIB_INLINE = 40,     /* uses that are inlined, … */
    STDLIB_ROWS = 1024,     /* … and in kernels of many elements on a device */
    STDLIB_LARGE = 160,     /* equations of a program that is always a function */
    PRODUCTS_INLINE = 12,   /* tiles of matrix products whose loops are inlined; of those that follow, … */
    PRODUCT_TERMS = 256,    /* … sums of so many terms are calls: transformer_grad executes 9 % less to compile; … */
    PRODUCT_SMALL = 1 << 16 /* … and so are those of a product of so many terms in all, outside of loops */
};

/* ---- the host: LLVM's time and memory grow faster than the length of a function, a block, a parameter list */
enum {
    PARALLEL_COST = 2000000,         /* operations that are worth waking a thread: JAXCC_RT_GRAIN; … */
    AWAKE_COST = PARALLEL_COST / 40, /* … its share if it is awake: AWAKE in runtime/thread.c */
    READ_COST = 4,                   /* of a term of a product, for each column */
    INLINE_COST = 4000,              /* a step that costs less may be a part of the schedule's function … */
    INLINE_CODE = 400,               /* … as long as these are this short in all */
    INLINE_STEP = 8,                 /* what one counts beside its members */
    CONTEXT_WORDS = 128,             /* of the memory for captures; more if a kernel needs them */
    MOST_CARRIED = 48,               /* values that a loop carries in registers */
    MOST_TOGETHER = 64,              /* arguments of a call that are written by one block */
    STACK_BYTES = 8192,              /* a larger workspace is on the heap */
    MOST_CHECKS = 64,                /* of one function */
    CUT_WEIGHT = 512,                /* a program of more equations is cut into parts */
    PART_WEIGHT = 128,               /* a body of more is cut */
    PART_WRITTEN = 800,              /* operations after which a part is full */
    STORE_LENGTH = 12,  /* operations that a store counts as: LLVM's schedulers compare it with all accesses */
    CUT_ARGUMENTS = 64, /* a program of more has them in memory */
    STEP_WEIGHT = 8     /* instructions of a step that is a call; one of rank 0 is one instruction */
};
/* ---- loops and branches of a device: kernels test whether they run where the host would have to wait */
enum {
    GUARDED_LAUNCHES = 256, /* kernels that are enqueued before the host reads whether a loop goes on, at most … */
    GUARDED_TURNS = 32,     /* … or turns */
    GUARDED_BRANCHES = 32,  /* kernels of all branches that are enqueued although one branch runs */
    GUARDED_BYTES = 1 << 22 /* of carries that a turn copies: copying more takes longer than to wait */
};
/* ---- graphs: kernels of a call that are enqueued as one */
enum {
    GRAPH_LAUNCHES = 8,  /* fewer are enqueued one by one */
    MOST_LAUNCHES = 4096 /* kernels are not counted further */
};
/* ---- objects of one library */
enum {
    SHARD_LENGTH = 1000, /* instructions of LLVM of one at least: 15 ms */
    MOST_SHARDS = 8
};
/* ---- constants */
enum {
    LARGE_BYTES = 1 << 20, /* from this size on a constant is large, … */
    MOST_SMALL = 16 << 20  /* … or when all small ones have so many bytes */
};

#endif
