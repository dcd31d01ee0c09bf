#include "rules.h"
Jaxpr *wellknown_rule(Ctx *cx, const Eqn *e) { return NULL; }
