/* The features of this CPU. */
#include "rt.h"
#include <stdio.h>
#include <string.h>

uint64_t jaxcc_rt_cpu;

static const struct {
    const char *name;
    uint32_t leaf, subleaf;
    uint8_t reg, bit, state;
} row[] = {
#define CPU(name, leaf, subleaf, reg, bit, state) {name, leaf, subleaf, reg, bit, state},
#include "cpu.def"
};
enum { ROWS = sizeof row / sizeof *row };

#ifdef __x86_64__
#include <cpuid.h>

/* 0: only xmm registers are saved, 1: ymm, 2: zmm and masks. */
static int saved_state(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    uint32_t lo, hi;
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (lo & 0xe6) == 0xe6 ? 2 : (lo & 6) == 6 ? 1 : 0;
}

__attribute__((constructor(101))) static void look(void) {
    uint64_t can = 0;
    int state = saved_state();
    for (int i = 0; i < ROWS; i++) {
        uint32_t r[4];
        if (row[i].state > state || !__get_cpuid_count(row[i].leaf, row[i].subleaf, &r[0], &r[1], &r[2], &r[3]))
            continue;
        if (row[i].subleaf) { /* reported in eax of subleaf 0 */
            uint32_t most = 0, b, c, d;
            __get_cpuid_count(row[i].leaf, 0, &most, &b, &c, &d);
            if (most < row[i].subleaf) continue;
        }
        if (r[row[i].reg] >> row[i].bit & 1) can |= (uint64_t)1 << i;
    }
    jaxcc_rt_cpu = can;
}
#endif

int jaxcc_rt_has(const char *feature) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(row[i].name, feature)) return jaxcc_rt_cpu >> i & 1;
    return 0;
}

int32_t jaxcc_rt_fail_cpu(uint64_t need) {
    char names[160];
    size_t n = 0;
    for (int i = 0; i < ROWS && n < sizeof names; i++)
        if (need >> i & ~jaxcc_rt_cpu >> i & 1)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", row[i].name);
    return jaxcc_rt_fail(JAXCC_CPU, "this CPU lacks %s, for which the library was compiled", names);
}
