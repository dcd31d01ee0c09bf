/* Included by sort.c for each width of keys: the first k of a row. R, KEY, SIGNED, LOW, SORT: a record, its key, a
   signed integer of the key's width, the key's lowest bit, a function that sorts records by all of their bits; N(f):
   the name of a function for them.

   An element that comes before the current k-th is a candidate. For small k the best are kept sorted, each candidate
   being inserted in its place; a bound of the k-th is found first, so that there are few even if the row is sorted the
   other way round. For larger k candidates are collected until the room is full, then cut to k. A few of a short row
   are found one after the other (minima). */
typedef struct {
    R *record, worst; /* room for twice `room` records; the k-th of all is no later: a bound, then the current one */
    int64_t k, room, found;
} N(Best);

/* Of k sorted records the last one gives way to r, which precedes it; no branch depends on where r belongs. */
static void N(put)(N(Best) * b, R r) {
    for (int64_t i = b->k - 1; i > 0; i--) {
        R before = b->record[i - 1], here = before > r ? before : r;
        b->record[i] = here < b->record[i] ? here : b->record[i];
    }
    b->record[0] = r < b->record[0] ? r : b->record[0];
    b->worst = b->record[b->k - 1];
}
/* Moves the k smallest of n distinct records to the front: Hoare's selection with branchless partitioning. */
static void N(least)(R *a, int64_t n, int64_t k) {
    for (int64_t lo = 0, hi = n; lo < k && k < hi;) {
        int64_t x = lo, y = lo + (hi - lo) / 2, z = hi - 1, t;
        if (a[y] < a[x]) t = x, x = y, y = t;
        if (a[z] < a[y]) y = a[z] < a[x] ? x : z;
        R pivot = a[y];
        a[y] = a[hi - 1];
        int64_t below = lo;
        for (int64_t i = lo; i < hi - 1; i++) {
            R r = a[i];
            a[i] = a[below];
            a[below] = r;
            below += r < pivot;
        }
        a[hi - 1] = a[below];
        a[below] = pivot;
        if (k <= below)
            hi = below;
        else
            lo = below + 1;
    }
}
static void N(cut)(N(Best) * b) {
    if (b->found < b->k) return;
    N(least)(b->record, b->found, b->k);
    b->found = b->k;
    b->worst = b->record[0];
    for (int64_t i = 1; i < b->k; i++)
        if (b->record[i] > b->worst) b->worst = b->record[i];
}
/* Are later elements of the same key candidates? They are not after one that was found. */
static bool N(equals)(const N(Best) * b) { return (uint32_t)b->worst == UINT32_MAX; }
/* The largest key of a candidate; there may be one. */
static KEY N(last)(const N(Best) * b) { return (KEY)(b->worst >> LOW) - !N(equals)(b); }
static bool N(complete)(const N(Best) * b) { return b->worst >> LOW == 0 && !N(equals)(b); }
/* The candidates among the keys of STRIDE elements from `first` on. */
static void N(keep)(N(Best) * b, const KEY *key, int64_t first) {
    KEY last = N(last)(b);
    for (int64_t j = 0; j < STRIDE; j++) {
        if (key[j] > last) continue;
        N(put)(b, (R)key[j] << LOW | (R)(first + j));
        if (N(complete)(b)) return;
        last = N(last)(b);
    }
}
static void N(append)(N(Best) * b, const KEY *key, int64_t first) {
    for (int64_t j = 0; j < STRIDE; j++) {
        R r = (R)key[j] << LOW | (R)(first + j);
        b->record[b->found] = r;
        b->found += r < b->worst;
    }
    if (b->found + STRIDE > b->room) N(cut)(b);
}
/* The same among CHUNK keys. Those after the last element are the largest: as k elements came before, none is a
   candidate. */
static void N(collect)(N(Best) * b, const KEY *key, int64_t first) {
    for (int64_t c = 0; c < CHUNK && !N(complete)(b); c += STRIDE) {
        KEY last = N(last)(b), any = 0;
        for (int j = 0; j < STRIDE; j++) any |= key[c + j] <= last;
        if (any) (b->k > FEW ? N(append) : N(keep))(b, key + c, first + c);
    }
}
/* The positions of the first k ≤ n / 4; `scratch`: room for twice 2k + 2 STRIDE records. */
static void N(select)(const char *x, int64_t n, Kind kind, bool largest, int64_t k, void *scratch, uint32_t *at) {
    N(Best) b = {scratch, (R) ~(R)0, k, 2 * k + 2 * STRIDE, 0};
    int64_t (*after)(const void *, int64_t, uint64_t, bool, int64_t, bool) = width[kind.bytes].after;
    if (k <= FEW && after)
        b.worst = ((R)width[kind.bytes].bound(x, n, k, kind.order, largest) << LOW) | (((R)1 << LOW) - 1);
    for (int64_t i = 0; i < k && k <= FEW; i++) b.record[i] = b.worst;
    for (int64_t i = 0; i < n && !N(complete)(&b); i += CHUNK) {
        KEY key[CHUNK];
        if (after) i += after(x + i * kind.bytes, n - i, (KEY)(b.worst >> LOW), N(equals)(&b), kind.order, largest);
        const char *from = x + i * kind.bytes;
        int64_t left = n - i < CHUNK ? n - i : CHUNK;
        width[kind.bytes].keys(key, from, left, kind.order, largest);
        if (left < CHUNK) memset(key + left, 0xff, sizeof key - (size_t)left * sizeof *key);
        N(collect)(&b, key, i);
    }
    R *sorted = b.record;
    if (k > FEW) {
        N(cut)(&b);
        sorted = SORT(b.record, b.record + b.room, k);
    }
    for (int64_t i = 0; i < k; i++) at[i] = (uint32_t)sorted[i];
}
/* The positions of the first k of a short row, each the least of those left; `scratch`: room for SHORT keys. A key that
   was found becomes the largest of all keys; once that is the least, all that are left are equal and follow by
   position. */
static void N(minima)(const char *x, int64_t n, Kind kind, bool largest, int64_t k, void *scratch, uint32_t *at) {
    typedef SIGNED Keys __attribute__((vector_size(VECTOR)));
    enum { LANES = VECTOR / sizeof(KEY) };
    const KEY sign = (KEY)1 << (8 * sizeof(KEY) - 1);
    int64_t vectors = (n + LANES - 1) / LANES, found = 0;
    SIGNED *key = scratch;
    width[kind.bytes].keys(key, x, n, kind.order, largest);
    for (int64_t i = n; i < vectors * LANES; i++) key[i] = -1;
    for (int64_t i = 0; i < vectors * LANES; i++) key[i] ^= (SIGNED)sign;
    for (; found < k; found++) {
        Keys least, at_least = {0}, v;
        memcpy(&least, key, sizeof least);
        for (int64_t i = 1; i < vectors; i++) {
            memcpy(&v, key + i * LANES, sizeof v);
            Keys less = v < least;
            least = (v & less) | (least & ~less);
            at_least = (((Keys){0} + (SIGNED)i) & less) | (at_least & ~less);
        }
        R first = (R) ~(R)0;
        for (int j = 0; j < LANES; j++) {
            R r = (R)((KEY)least[j] ^ sign) << LOW | (R)(at_least[j] * LANES + j);
            first = r < first ? r : first;
        }
        if ((KEY)(first >> LOW) == (KEY) ~(KEY)0) break;
        at[found] = (uint32_t)first;
        key[(uint32_t)first] = (SIGNED)(sign - 1);
    }
    for (uint32_t i = 0; found < k; i++) {
        bool taken = false;
        for (int64_t j = 0; j < found; j++) taken |= at[j] == i;
        if (!taken) at[found++] = i;
    }
}
#undef R
#undef KEY
#undef SIGNED
#undef LOW
#undef SORT
#undef N
