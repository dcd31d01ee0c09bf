/* The text of a thread's last failure. */
#include "rt.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[256];

const char *jaxcc_rt_error(void) { return text; }

int32_t jaxcc_rt_fail_list(int32_t status, const char *format, va_list args) {
    vsnprintf(text, sizeof text, format, args);
    return status;
}
int32_t jaxcc_rt_fail(int32_t status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    jaxcc_rt_fail_list(status, format, args);
    va_end(args);
    return status;
}

int32_t jaxcc_rt_fail_text(int32_t status, const char *what) { return jaxcc_rt_fail(status, "%s", what); }

int32_t jaxcc_rt_fail_null(const char *argument) {
    return jaxcc_rt_fail(JAXCC_ARGUMENT, "argument '%s' is NULL", argument);
}

int32_t jaxcc_rt_check_pointers(void *const *first, int64_t nfirst, void *const *rest, int64_t n, const char *names) {
    bool null = false;
    for (int64_t i = 0; i < n; i++) null |= !(i < nfirst ? first : rest)[i];
    for (int64_t i = 0; i < n && null; i++) {
        size_t length = strcspn(names, " ");
        if (!(i < nfirst ? first : rest)[i] && *names != '-')
            return jaxcc_rt_fail(JAXCC_ARGUMENT, "argument '%.*s' is NULL", (int)length, names);
        names += length + 1;
    }
    return 0;
}

int32_t jaxcc_rt_fail_negative(const char *dim, int64_t value) {
    return jaxcc_rt_fail(JAXCC_DIMENSION, "dimension '%s' is negative: %" PRId64, dim, value);
}

int32_t jaxcc_rt_fail_unequal(const char *a, int64_t x, const char *b, int64_t y) {
    return jaxcc_rt_fail(JAXCC_DIMENSION, "dimensions '%s' and '%s' must be equal, but are %" PRId64 " and %" PRId64, a,
                         b, x, y);
}

int32_t jaxcc_rt_fail_above(const char *a, int64_t x, const char *b, int64_t y) {
    return jaxcc_rt_fail(JAXCC_DIMENSION, "%s is %lld, more than %s, which is %lld", a, (long long)x, b, (long long)y);
}
int32_t jaxcc_rt_fail_divisor(const char *expression) {
    return jaxcc_rt_fail(JAXCC_DIMENSION, "'%s' divides by zero", expression);
}

int32_t jaxcc_rt_fail_size(const char *argument) {
    return jaxcc_rt_fail(JAXCC_DIMENSION, "'%s' would be larger than 2^63-1 bytes", argument);
}

int32_t jaxcc_rt_fail_memory(int64_t bytes, const char *hint) {
    if (bytes == INT64_MAX) return jaxcc_rt_fail(JAXCC_MEMORY, "no memory for 2^63 bytes or more%s", hint);
    return jaxcc_rt_fail(JAXCC_MEMORY, "no memory for a workspace of %" PRId64 " bytes%s", bytes, hint);
}
