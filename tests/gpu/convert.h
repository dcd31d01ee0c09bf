/* Conversions of types that registers may be wider than, and moves between registers of different widths. */
#ifndef PTX_CONVERT_H
#define PTX_CONVERT_H
#include "parse.h"

typedef enum {
    ROUND_NONE,
    ROUND_RN,
    ROUND_RZ,
    ROUND_RM,
    ROUND_RP,
    ROUND_RNI,
    ROUND_RZI,
    ROUND_RMI,
    ROUND_RPI,
    ROUND_RNA
} ConvertRounding;
/* Fills in what the conversion needs; NULL: there is none. */
Run *convert_run(Ins *, const TypeInfo *to, const TypeInfo *from, uint32_t to_width, uint32_t from_width,
                 ConvertRounding, bool flush, bool saturate);

Run run_pack, run_unpack, run_to_generic, run_from_generic, run_isspacep, run_nothing;

#endif
