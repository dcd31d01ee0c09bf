#include "timer.h"
#include <string.h>
#include <time.h>

typedef struct {
    const char *name;
    double wall, cpu; /* ms */
} Stage;
struct Timer {
    Arena *arena;
    Stage *at;
    uint32_t n, cap, now; /* now == n: no stage is running */
    double wall, cpu;     /* when the current stage began */
};

static double clock_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

Timer *timer_new(Arena *arena) {
    Timer *t = arena_new(arena, Timer, 1);
    t->arena = arena;
    return t;
}

void timer_stage(Timer *t, const char *name) {
    if (!t) return;
    double wall = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (t->now < t->n) {
        t->at[t->now].wall += wall - t->wall;
        t->at[t->now].cpu += cpu - t->cpu;
    }
    t->wall = wall;
    t->cpu = cpu;
    t->now = 0;
    while (t->now < t->n && (!name || strcmp(t->at[t->now].name, name) != 0)) t->now++;
    if (name && t->now == t->n) push(t->arena, t, ((Stage){name, 0, 0}));
}

void timer_print(const Timer *t, FILE *out) {
    double wall = 0, cpu = 0;
    fprintf(out, "%-12s %10s %10s\n", "stage", "wall ms", "cpu ms");
    for (const Stage *s = t->at; s < t->at + t->n; s++) {
        fprintf(out, "%-12s %10.2f %10.2f\n", s->name, s->wall, s->cpu);
        wall += s->wall;
        cpu += s->cpu;
    }
    fprintf(out, "%-12s %10.2f %10.2f\n", "total", wall, cpu);
}
