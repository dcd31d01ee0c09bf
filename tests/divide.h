/* The law of split: known + unknown = the whole. */
#ifndef JAXCC_TESTS_DIVIDE_H
#define JAXCC_TESTS_DIVIDE_H
#include <stdbool.h>
#include <stdint.h>

/* Reads the program of the file `from`, takes its --jvp, divides that at some of the tangents, which `seed` draws, and
   writes to the file `to` a program that computes the known part and then the other. False after diagnostics. */
bool divide(const char *from, const char *to, uint64_t seed);

#endif
