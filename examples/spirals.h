/* What the network of train.jaxpr is trained with. */
#ifndef SPIRALS_H
#define SPIRALS_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { N = 96, H = 32 };

/* Numbers between −scale and scale. */
static void fill(float *x, size_t n, float scale) {
    static uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = scale * ((float)(state >> 8) / 8388608.0f - 1.0f);
    }
}

/* N points on three spiral arms in the plane, and the arm of each as a one-hot row. */
static float points[N][2], arms[N][3];
static void spirals(void) {
    for (int k = 0; k < N; k++) {
        float r = 0.1f + 0.9f * (float)k / N, angle = 4 * r + 2.0943951f * (float)(k % 3);
        points[k][0] = r * cosf(angle);
        points[k][1] = r * sinf(angle);
        arms[k][k % 3] = 1;
    }
}

#endif
