/* Long schedules are cut into functions. */
#ifndef JAXCC_PART_H
#define JAXCC_PART_H
#include "host.h"

typedef struct {
    Function fn;
    Str name;
    Frame was; /* of the function around */
    V context;
    uint32_t room;
    bool open;
} Part;

/* Is the program so long, or has so many arguments, that it is not written as one function of them? */
bool part_cuts(const Plan *, const Signature *);
/* What is written next belongs to a part: to the open one, unless that is full. */
void part_next(Host *, const Body *, Part *);
/* Nothing does any more. */
void part_end(Host *, Part *);

#endif
