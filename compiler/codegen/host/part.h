/* Long schedules are cut into functions. */
#ifndef JAXCC_PART_H
#define JAXCC_PART_H
#include "host.h"

typedef struct {
    Function fn;
    Str name;
    Frame was; /* of the enclosing function */
    V context;
    uint32_t room;
    bool open;
} Part;

/* Is the program too long, or has it too many arguments, to be written as one function? */
bool part_cuts(const Plan *, const Signature *);
/* Continues in a part: the open one or, if that is full, a new one. */
void part_next(Host *, const Body *, Part *);
/* Ends the open part, if there is one. */
void part_end(Host *, Part *);

#endif
