/* Calls the libraries of this folder: each is one function of its header. */
#include "attention.h"
#include "classify.h"
#include "moons.h"
#include "recurrence.h"
#include "spirals.h"
#include "train.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A call that fails says why. */
static void must(int32_t status, const char *error) {
    if (status == 0) return;
    fprintf(stderr, "status %d: %s\n", (int)status, error);
    exit(1);
}

static int right_ones(float p[N][3]) {
    int right = 0;
    for (int k = 0; k < N; k++) {
        int best = 0;
        for (int c = 1; c < 3; c++)
            if (p[k][c] > p[k][best]) best = c;
        right += best == k % 3;
    }
    return right;
}

static void show_classify(void) {
    static float p[N][3];
    int calls = 10000;
    double start = now();
    for (int i = 0; i < calls; i++) must(classify(points[0], p[0]), classify_error());
    printf("classify    %d of %d points on the right arm of the spiral; %.2f us a call\n", right_ones(p), N,
           (now() - start) / calls * 1e6);
}

static void show_train(void) {
    /* weights and biases of the layers; two copies: a step reads one and writes the other */
    static float w0[2][2][H], b0[2][H], w1[2][H][H], b1[2][H], w2[2][H][3], b2[2][3];
    fill(w0[0][0], 2 * H, 1.5f);
    fill(w1[0][0], H * H, 0.4f);
    fill(w2[0][0], 3 * H, 0.4f);
    float first = 0, loss = 0;
    int steps = 3000;
    double start = now();
    for (int i = 0; i < steps; i++) {
        int from = i % 2, to = 1 - from;
        must(train(w0[from][0], b0[from], w1[from][0], b1[from], w2[from][0], b2[from], points[0], arms[0], w0[to][0],
                   b0[to], w1[to][0], b1[to], w2[to][0], b2[to], &loss),
             train_error());
        if (i == 0) first = loss;
    }
    printf("train       loss %.4f, after %d steps %.4f; %.2f us a step\n", first, steps, loss,
           (now() - start) / steps * 1e6);
}

/* The text is the loss of a network, a program without derivatives; --value-and-grad made the library of it. */
static void show_moons(void) {
    enum { POINTS = 128, WIDTH = 16 };
    static float x[POINTS][2], moon[POINTS][2], w0[2 * WIDTH], b0[WIDTH], w1[WIDTH * 2], b1[2];
    static float w0_ct[2 * WIDTH], b0_ct[WIDTH], w1_ct[WIDTH * 2], b1_ct[2];
    const struct {
        float *at, *slope;
        size_t n;
    } weights[] = {{w0, w0_ct, 2 * WIDTH}, {b0, b0_ct, WIDTH}, {w1, w1_ct, WIDTH * 2}, {b1, b1_ct, 2}};
    for (int k = 0; k < POINTS; k++) {
        int second = k >= POINTS / 2;
        float angle = 6.2831853f * (float)(k % (POINTS / 2)) / POINTS;
        x[k][0] = second ? 1 - cosf(angle) : cosf(angle);
        x[k][1] = second ? 0.5f - sinf(angle) : sinf(angle);
        moon[k][second] = 1;
    }
    fill(w0, 2 * WIDTH, 1.5f);
    fill(w1, WIDTH * 2, 0.4f);
    float first = 0, loss = 0, rate = 0.5f;
    int steps = 2000;
    double start = now();
    for (int i = 0; i < steps; i++) {
        must(moons(w0, b0, w1, b1, x[0], moon[0], &loss, w0_ct, b0_ct, w1_ct, b1_ct), moons_error());
        if (i == 0) first = loss;
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
            for (size_t m = 0; m < weights[k].n; m++) weights[k].at[m] -= rate * weights[k].slope[m];
    }
    printf("moons       loss %.4f, after %d steps along the library's gradient %.4f; %.2f us a step\n", first, steps,
           loss, (now() - start) / steps * 1e6);
    if (!(loss < 0.01f)) must(1, "the loss of moons is not below 0.01");
}

static void show_attention(void) {
    static float q[4 * 64 * 16], k[4 * 64 * 16], v[4 * 64 * 16], out[4 * 64 * 16];
    fill(q, 4 * 64 * 16, 2);
    fill(k, 4 * 64 * 16, 2);
    fill(v, 4 * 64 * 16, 2);
    int calls = 2000;
    double start = now();
    for (int i = 0; i < calls; i++) must(attention(q, k, v, out), attention_error());
    double seconds = now() - start;
    /* the first position sees only itself */
    printf("attention   position 0 gives %.4f, its value is %.4f; the last gives %.4f; %.2f us a "
           "call\n",
           out[0], v[0], out[64 * 16 - 1], seconds / calls * 1e6);
}

static void show_recurrence(void) {
    static float h[32], xs[256 * 8], w[32 * 32], u[32 * 8], last[32], norms[256];
    fill(xs, 256 * 8, 1);
    fill(w, 32 * 32, 0.3f);
    fill(u, 32 * 8, 0.3f);
    int calls = 1000;
    double start = now();
    for (int i = 0; i < calls; i++) must(recurrence(h, xs, w, u, last, norms), recurrence_error());
    printf("recurrence  |h| is %.4f after 1 step, %.4f after 256; %.2f us a call\n", norms[0], norms[255],
           (now() - start) / calls * 1e6);
}

int main(void) {
    spirals();
    show_classify();
    show_train();
    show_moons();
    show_attention();
    show_recurrence();
    return 0;
}
