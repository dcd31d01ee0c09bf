/* The tables of operations. */
#ifndef PTX_OPS_H
#define PTX_OPS_H
#include "program.h"

/* Rows leave at zero what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
extern const Rows rows_int, rows_bits, rows_float, rows_half, rows_compare, rows_convert, rows_warp;

#endif
