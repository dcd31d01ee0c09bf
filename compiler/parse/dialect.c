#include "parser.h"
void dialect_add(Parser *p, Eqn e) { eqn_add(p, e); }
