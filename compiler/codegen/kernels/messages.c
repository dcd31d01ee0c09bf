#include "messages.h"
#include "atomic.h"
#include "threads.h"
#include <assert.h>
#include <math.h>

/* Nothing orders the words of a message but the words themselves: none of them is 0. An f64 is one word, its
   complement; of anything else each 32 bits are the lower half of a word, whose other half is not 0. */

enum { HALF = 32, NUMBER_BYTES = 4, MOST_WORDS = 32, VALUE_WORDS = 4 };

static V word_at(Emit *e, V place, uint32_t i) { return em_gep(e, place, em_i64(e, i), e->i64); }
static bool is_double(Emit *e, MlirType t) { return mlirTypeEqual(t, e->f64); }
static uint32_t words_in(Emit *e, MlirType t) { return is_double(e, t) ? 1 : threads_words_in(e, t); }
uint32_t message_words(Emit *e, uint32_t n, const V *values) {
    uint32_t words = 0;
    for (uint32_t i = 0; i < n; i++) words += words_in(e, mlirValueGetType(values[i]));
    return words;
}
static V complement(Emit *e, V word) { return em_bin(e, "llvm.xor", word, em_i64(e, -1)); }
/* All NaNs become one, whose complement is not 0. */
static V word_of_double(Emit *e, V x) {
    V one = em_float(e, e->f64, (double)NAN);
    return complement(e, em_cast(e, "llvm.bitcast", e->i64, em_select(e, em_cmpf(e, "uno", x, x), one, x)));
}
static void encode(Emit *e, V value, V *words) {
    V halves[VALUE_WORDS];
    if (is_double(e, mlirValueGetType(value))) {
        words[0] = word_of_double(e, value);
        return;
    }
    threads_to_words(e, value, halves);
    for (uint32_t w = 0; w < words_in(e, mlirValueGetType(value)); w++)
        words[w] = em_bin(e, "llvm.or", em_cast(e, "llvm.zext", e->i64, halves[w]), em_i64(e, (int64_t)1 << HALF));
}
static V decode(Emit *e, MlirType t, const V *words) {
    V halves[VALUE_WORDS];
    if (is_double(e, t)) return em_cast(e, "llvm.bitcast", t, complement(e, words[0]));
    for (uint32_t w = 0; w < words_in(e, t); w++) halves[w] = em_cast(e, "llvm.trunc", e->i32, words[w]);
    return threads_from_words(e, t, halves);
}
void message_leave(Kernel *k, V place, uint32_t n, const V *values) {
    Emit *e = k->e;
    V words[VALUE_WORDS] = {{NULL}};
    for (uint32_t i = 0, at = 0; i < n; i++) {
        encode(e, values[i], words);
        for (uint32_t w = 0; w < words_in(e, mlirValueGetType(values[i])); w++)
            atomic_store_word(e, words[w], word_at(e, place, at++));
    }
}
void message_wait(Kernel *k, uint32_t places, const V *place, uint32_t n, V *values) {
    Emit *e = k->e;
    uint32_t own = message_words(e, n, values), all = places * own;
    V words[MOST_WORDS + 1], zero[MOST_WORDS], none = em_i64(e, 0);
    MlirType types[MOST_WORDS];
    assert(all && all <= MOST_WORDS);
    for (uint32_t i = 0; i < all; i++) zero[i] = none, types[i] = e->i64;
    Scope before = em_begin(e, all, types);
    words[0] = em_int(e, e->i1, 0);
    for (uint32_t i = 0; i < all; i++) words[i + 1] = atomic_load_word(e, word_at(e, place[i / own], i % own));
    for (uint32_t i = 0; i < all; i++) words[0] = em_bin(e, "llvm.or", words[0], em_cmpi(e, "eq", words[i + 1], none));
    em_op(e, "scf.condition", &(Op){0, NULL, all + 1, words, 0, NULL, 0, NULL});
    em_end(e, &before);
    Scope after = em_begin(e, all, types);
    for (uint32_t i = 0; i < all; i++) words[i] = em_arg(&after, i);
    em_op(e, "scf.yield", &(Op){0, NULL, all, words, 0, NULL, 0, NULL});
    em_end(e, &after);
    const V *r = em_while(e, all, zero, &before, &after);
    for (uint32_t i = 0, at = 0; i < places * n; i++) {
        MlirType t = mlirValueGetType(values[i % n]);
        V x = decode(e, t, r + at);
        at += words_in(e, t);
        values[i] = x;
    }
}
V message_turn(Kernel *k, V place) {
    Emit *e = k->e;
    V shared = threads_share(k, NUMBER_BYTES);
    If f = em_if(e, em_cmpi(e, "eq", thread_number(k), em_i64(e, 0)));
    em_store(e, atomic_count(e, place), shared, NUMBER_BYTES);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
    threads_meet(k);
    return em_cast(e, "llvm.zext", e->i64, em_load(e, e->i32, shared, NUMBER_BYTES));
}
