#include "messages.h"
#include "atomic.h"
#include "threads.h"
#include <assert.h>

/* Nothing orders the words of a message but the words themselves: the lower half of each has 32 bits of the values, the other
   one says that they are there. */

enum { HALF = 32, WORD_BYTES = 8, MOST_WORDS = 32 };

static V word_at(Emit *e, V place, uint32_t i) { return em_gep(e, place, em_i64(e, i), e->i64); }
uint32_t message_words(Emit *e, uint32_t n, const V *values) {
    uint32_t words = 0;
    for (uint32_t i = 0; i < n; i++) words += threads_words_in(e, mlirValueGetType(values[i]));
    return words;
}
void message_leave(Kernel *k, V place, uint32_t n, const V *values) {
    Emit *e = k->e;
    V words[MOST_WORDS], there = em_i64(e, (int64_t)1 << HALF);
    assert(message_words(e, n, values) <= MOST_WORDS);
    for (uint32_t i = 0, at = 0; i < n; i++) {
        threads_to_words(e, values[i], words);
        for (uint32_t w = 0; w < threads_words_in(e, mlirValueGetType(values[i])); w++) {
            V word = em_bin(e, "llvm.or", em_cast(e, "llvm.zext", e->i64, words[w]), there);
            atomic_store_word(e, word, word_at(e, place, at++));
        }
    }
}
void message_wait(Kernel *k, V place, uint32_t n, V *values) {
    Emit *e = k->e;
    uint32_t all = message_words(e, n, values);
    V words[MOST_WORDS + 1], zero[MOST_WORDS], half[MOST_WORDS], last = {NULL};
    MlirType types[MOST_WORDS];
    assert(all <= MOST_WORDS);
    for (uint32_t i = 0; i < all; i++) zero[i] = em_i64(e, 0), types[i] = e->i64;
    Scope before = em_begin(e, all, types);
    for (uint32_t i = 0; i < all; i++) {
        words[i + 1] = atomic_load_word(e, word_at(e, place, i));
        last = i ? em_bin(e, "llvm.and", last, words[i + 1]) : words[1];
    }
    words[0] = em_cmpi(e, "ult", last, em_i64(e, (int64_t)1 << HALF));
    em_op(e, "scf.condition", &(Op){0, NULL, all + 1, words, 0, NULL, 0, NULL});
    em_end(e, &before);
    Scope after = em_begin(e, all, types);
    for (uint32_t i = 0; i < all; i++) words[i] = em_arg(&after, i);
    em_op(e, "scf.yield", &(Op){0, NULL, all, words, 0, NULL, 0, NULL});
    em_end(e, &after);
    const V *r = em_while(e, all, zero, &before, &after);
    for (uint32_t i = 0; i < all; i++) half[i] = em_cast(e, "llvm.trunc", e->i32, r[i]);
    for (uint32_t i = 0, at = 0; i < n; i++) {
        MlirType t = mlirValueGetType(values[i]);
        values[i] = threads_from_words(e, t, half + at);
        at += threads_words_in(e, t);
    }
}
V message_turn(Kernel *k, V place) {
    Emit *e = k->e;
    V shared = threads_share(k, WORD_BYTES);
    If f = em_if(e, em_cmpi(e, "eq", thread_number(k), em_i64(e, 0)));
    em_store(e, atomic_count(e, place), shared, HALF / 8);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
    threads_meet(k);
    return em_cast(e, "llvm.zext", e->i64, em_load(e, e->i32, shared, HALF / 8));
}
