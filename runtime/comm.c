/* Devices as threads: each runs the program with a workspace of its own; members of a group read each other's data in
   place, between two meetings of the group. */
#include "comm.h"
#include "rt.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- meetings: a device is in at most one at a time */
typedef struct Meeting {
    struct Meeting *next;
    const int64_t *members; /* memory of a device that stays until all have arrived */
    int64_t level, n, arrived, left;
    const void **parts; /* by member */
} Meeting;
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Meeting *open;
    int32_t status; /* of the first device that failed */
    char text[256];
} State;

static bool same_group(const Meeting *m, int64_t level, const int64_t *members, int64_t n) {
    return m->level == level && m->n == n && memcmp(m->members, members, (size_t)n * sizeof *members) == 0;
}
static int64_t place(const jaxcc_rt_comm *c, const int64_t *members, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (members[i] == c->device) return i;
    return 0;
}
/* Waits until the whole group is here, so that each other's data can be read. NULL: a device ended. */
static Meeting *meet(jaxcc_rt_comm *c, const int64_t *members, int64_t n, const void *mine) {
    State *s = c->state;
    pthread_mutex_lock(&s->lock);
    Meeting *m = s->status ? NULL : s->open;
    while (m && (m->arrived == m->n || !same_group(m, c->level, members, n))) m = m->next;
    if (!m && !s->status) {
        m = malloc(sizeof *m + (size_t)n * sizeof *m->parts);
        if (!m)
            s->status = JAXCC_MEMORY, strcpy(s->text, "no memory");
        else {
            *m = (Meeting){
                .next = s->open, .members = members, .level = c->level, .n = n, .parts = (const void **)(m + 1)};
            s->open = m;
        }
    }
    if (m) {
        m->parts[place(c, members, n)] = mine;
        m->arrived++;
    }
    pthread_cond_broadcast(&s->changed);
    while (!s->status && m && m->arrived < n) pthread_cond_wait(&s->changed, &s->lock);
    if (s->status) m = NULL;
    pthread_mutex_unlock(&s->lock);
    return m;
}
/* Waits until all have read. */
static int32_t part(jaxcc_rt_comm *c, Meeting *m) {
    State *s = c->state;
    if (!m) return s->status;
    pthread_mutex_lock(&s->lock);
    m->left++;
    pthread_cond_broadcast(&s->changed);
    while (!s->status && m->left < m->n) pthread_cond_wait(&s->changed, &s->lock);
    int32_t status = s->status;
    if (!status && ++m->left == 2 * m->n) { /* the last one to leave */
        for (Meeting **p = &s->open; *p; p = &(*p)->next)
            if (*p == m) {
                *p = m->next;
                break;
            }
        free(m);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}
static int32_t all_gather(jaxcc_rt_comm *c, const int64_t *members, int64_t n, const void *mine, void *all,
                          int64_t bytes) {
    Meeting *m = meet(c, members, n, mine);
    for (int64_t i = 0; m && i < n; i++) memcpy((char *)all + i * bytes, m->parts[i], (size_t)bytes);
    return part(c, m);
}
static int32_t all_to_all(jaxcc_rt_comm *c, const int64_t *members, int64_t n, const void *mine, void *all,
                          int64_t bytes) {
    int64_t me = place(c, members, n);
    Meeting *m = meet(c, members, n, mine);
    for (int64_t i = 0; m && i < n; i++)
        memcpy((char *)all + i * bytes, (const char *)m->parts[i] + me * bytes, (size_t)bytes);
    return part(c, m);
}
static int32_t permute(jaxcc_rt_comm *c, const int64_t *members, int64_t n, int64_t from, const void *mine, void *out,
                       int64_t bytes) {
    Meeting *m = meet(c, members, n, mine);
    if (m && from >= 0 && from < n)
        memcpy(out, m->parts[from], (size_t)bytes);
    else
        memset(out, 0, (size_t)bytes);
    return part(c, m);
}

/* ---- spmd */
typedef struct {
    jaxcc_rt_comm comm;
    void (*body)(void *args, jaxcc_rt_heap *);
    void **args;
    int64_t workspace;
    pthread_t thread;
} Device;

static void *device(void *user) {
    Device *d = user;
    State *s = d->comm.state;
    void *workspace = d->workspace ? jaxcc_rt_workspace_get(d->workspace) : NULL;
    int32_t status;
    if (d->workspace && !workspace)
        status = jaxcc_rt_fail_memory(d->workspace, "");
    else {
        *(void **)d->args[-1] = workspace;
        status = jaxcc_rt_device_run(d->body, d->args, &d->comm);
    }
    if (workspace) jaxcc_rt_workspace_put(workspace);
    if (status) {
        pthread_mutex_lock(&s->lock);
        if (!s->status) {
            s->status = status;
            strncpy(s->text, jaxcc_rt_error(), sizeof s->text - 1);
        }
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}
/* The devices of a nested program are numbered consecutively across the devices of the enclosing one, so that they can
   meet across them; all share one state. sizes: devices, inputs, outputs, bytes of workspace, how many extents,
   the extents, bytes of each output's part. arrays: inputs, outputs. The body's arguments: extents, inputs, parts of
   outputs, workspace. */
void jaxcc_rt_spmd(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes,
                   void (*body)(void *args, jaxcc_rt_heap *)) {
    int64_t n = sizes[0], nin = sizes[1], nout = sizes[2], ndims = sizes[4], each = ndims + nin + nout + 2;
    const int64_t *dims = sizes + 5, *bytes = dims + ndims;
    const jaxcc_rt_comm *around = jaxcc_rt_comm_of(call);
    jaxcc_rt_comm first = {.devices = n, .level = 1};
    State own = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}, *s = &own;
    if (around) {
        first =
            (jaxcc_rt_comm){.device = around->device * n, .devices = around->devices * n, .level = around->level + 1};
        s = around->state;
    }
    Device *d = calloc((size_t)n, sizeof *d);
    void **args = calloc((size_t)(n * each), sizeof *args);
    int64_t started = 0;
    for (int64_t i = 0; d && args && i < n; i++, started++) {
        void **a = args + i * each + 1; /* before them: the place of the workspace */
        d[i] = (Device){.body = body, .args = a, .workspace = sizes[3]};
        d[i].comm = (jaxcc_rt_comm){first.device + i, first.devices, first.level, s, all_gather, all_to_all, permute};
        for (int64_t k = 0; k < ndims; k++) memcpy(&a[k], &dims[k], sizeof *dims);
        for (int64_t k = 0; k < nin; k++) a[ndims + k] = arrays[k];
        for (int64_t k = 0; k < nout; k++) a[ndims + nin + k] = (char *)arrays[nin + k] + i * bytes[k];
        a[-1] = &a[each - 2];
        if (pthread_create(&d[i].thread, NULL, device, &d[i])) break;
    }
    if (started < n) { /* running devices must not wait for those that did not start */
        pthread_mutex_lock(&s->lock);
        if (!s->status) s->status = JAXCC_MEMORY, strcpy(s->text, "no memory for the threads of all devices");
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    for (int64_t i = 0; i < started; i++) pthread_join(d[i].thread, NULL);
    while (own.open) { /* a device ended while others met */
        Meeting *m = own.open;
        own.open = m->next;
        free(m);
    }
    free(args);
    free(d);
    pthread_mutex_lock(&s->lock);
    int32_t status = s->status; /* ends an enclosing program too */
    pthread_mutex_unlock(&s->lock);
    if (status) jaxcc_rt_stop(call, status, "%s", s->text);
}

/* ---- called by programs: sizes begin with bytes and the group */
/* From sizes[0]: the number of axes, extent and stride of each; the number of groups, members of a group, their places.
   Sets the members of this device's group, which the caller frees, and its place; returns their number. A group with
   fewer members than others is padded with places -1. */
static int64_t group(jaxcc_rt_heap *call, const int64_t *sizes, int64_t **members_of, int64_t *me) {
    const jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    int64_t axes = *sizes++, n = 1, base = c->device, at = 0;
    for (int64_t k = 0; k < axes; k++) {
        int64_t coordinate = c->device / sizes[2 * k + 1] % sizes[2 * k];
        base -= coordinate * sizes[2 * k + 1];
        at = at * sizes[2 * k] + coordinate;
        n *= sizes[2 * k];
    }
    const int64_t *groups = sizes + 2 * axes;
    int64_t ngroups = groups[0], each = groups[1], first = 0;
    groups += 2;
    for (int64_t i = 0; i < ngroups * each; i++)
        if (groups[i] == at) first = i / each;
    int64_t count = ngroups ? each : n;
    while (ngroups && count && groups[first * each + count - 1] < 0) count--;
    *me = ngroups ? 0 : at;
    int64_t *members = *members_of = jaxcc_rt_heap_get(call, count * (int64_t)sizeof *members);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = ngroups ? groups[first * each + i] : i, device = base;
        if (rest == at) *me = i;
        for (int64_t k = axes; k-- > 0;) {
            device += rest % sizes[2 * k] * sizes[2 * k + 1];
            rest /= sizes[2 * k];
        }
        members[i] = device;
    }
    return count;
}
static void done(jaxcc_rt_heap *call, int32_t status) {
    if (status) jaxcc_rt_stop(call, status, "another device ended");
}
void jaxcc_rt_device(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    *(int32_t *)arrays[0] = (int32_t)jaxcc_rt_comm_of(call)->device;
}
void jaxcc_rt_all_gather(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    int64_t *members, me, n = group(call, sizes + 1, &members, &me);
    done(call, c->all_gather(c, members, n, arrays[0], arrays[1], sizes[0]));
    jaxcc_rt_heap_put(call, members);
    for (int64_t each = sizes[3 + 2 * sizes[1]]; n < each; n++) /* without a member: any values of the type */
        memcpy((char *)arrays[1] + n * sizes[0], arrays[0], (size_t)sizes[0]);
}
void jaxcc_rt_all_to_all(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    int64_t *members, me, n = group(call, sizes + 1, &members, &me);
    done(call, c->all_to_all(c, members, n, arrays[0], arrays[1], sizes[0]));
    jaxcc_rt_heap_put(call, members);
}
/* After bytes: the place from which each place receives, -1: none; then the group. */
void jaxcc_rt_permute(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    const int64_t *from = sizes + 2;
    int64_t *members, me, n = group(call, sizes + 2 + sizes[1], &members, &me);
    done(call, c->permute(c, members, n, me < sizes[1] ? from[me] : -1, arrays[0], arrays[1], sizes[0]));
    jaxcc_rt_heap_put(call, members);
}
