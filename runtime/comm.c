/* Devices as threads: each runs the program with a workspace of its own; members of a group read each other's data in
   place, between two meetings of the group. */
#include "comm.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- meetings: a device is in at most one at a time */
typedef struct Meeting {
    struct Meeting *next;
    const int64_t *members; /* memory of a device that stays until all have arrived */
    int64_t level, n, arrived, left;
    bool ready, done; /* the members may go on; the data were moved for all of them */
    int32_t status;   /* of what was done for all of them */
    jaxcc_rt_member at[];
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
/* All devices end. */
static void fail(State *s, int32_t status, const char *text) {
    if (!s->status) {
        s->status = status;
        strncpy(s->text, text, sizeof s->text - 1);
    }
    pthread_cond_broadcast(&s->changed);
}
static void fail_locked(State *s, int32_t status, const char *text) {
    pthread_mutex_lock(&s->lock);
    fail(s, status, text);
    pthread_mutex_unlock(&s->lock);
}
/* What comes next begins after the last marks of the other members. */
static int32_t follow_others(jaxcc_rt_heap *call, const Meeting *m) {
    const jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    int32_t status = 0;
    for (int64_t i = 0; i < m->n && !status; i++)
        if (m->at[i].comm != c) status = c->how->follow(call, m->at[i].comm);
    return status;
}
static void end_if(jaxcc_rt_heap *call, int32_t status) {
    if (status) jaxcc_rt_heap_end(call, status);
}
/* The group's meeting that has not begun, if there is one; else a new one, NULL without memory. */
static Meeting *meeting_of(State *s, const jaxcc_rt_comm *c, const int64_t *members, int64_t n) {
    Meeting *m = s->open;
    while (m && (m->arrived == m->n || !same_group(m, c->level, members, n))) m = m->next;
    if (m) return m;
    m = malloc(sizeof *m + (size_t)n * sizeof *m->at);
    if (!m) return NULL;
    *m = (Meeting){.next = s->open, .members = members, .level = c->level, .n = n};
    return s->open = m;
}
/* Until something changes. If what this device has begun fails meanwhile, all devices end. */
static void wait_for_change(jaxcc_rt_heap *call, State *s) {
    enum { PERIOD = 20 * 1000 * 1000, SECOND = 1000 * 1000 * 1000 }; /* ns */
    const jaxcc_rt_devices *how = jaxcc_rt_comm_of(call)->how;
    struct timespec until;
    if (!how->watch || clock_gettime(CLOCK_REALTIME, &until)) {
        pthread_cond_wait(&s->changed, &s->lock);
        return;
    }
    until.tv_nsec += PERIOD;
    if (until.tv_nsec >= SECOND) until.tv_nsec -= SECOND, until.tv_sec++;
    if (!pthread_cond_timedwait(&s->changed, &s->lock, &until)) return;
    pthread_mutex_unlock(&s->lock);
    int32_t status = how->watch(call);
    pthread_mutex_lock(&s->lock);
    if (status) fail(s, status, jaxcc_rt_error());
}
/* By the last one to arrive: what is done for all at once. */
static void all_here(jaxcc_rt_heap *call, State *s, Meeting *m, jaxcc_rt_exchange x) {
    const jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    if (c->how->together) {
        pthread_mutex_unlock(&s->lock);
        x.members = m->at;
        m->status = c->how->together(call, &x, &m->done);
        pthread_mutex_lock(&s->lock);
    }
    if (m->status) fail(s, m->status, jaxcc_rt_error());
    m->ready = true;
}
/* Waits until the whole group is here, so that each other's data can be read. If a device has ended before, this one
   ends; if all have come, all go on to part() with the status of what they do in between. */
static Meeting *meet(jaxcc_rt_heap *call, const int64_t *members, jaxcc_rt_exchange x, jaxcc_rt_member mine,
                     int32_t *status) {
    const jaxcc_rt_comm *c = mine.comm;
    State *s = c->state;
    end_if(call, c->how->mark(call));
    pthread_mutex_lock(&s->lock);
    Meeting *m = s->status ? NULL : meeting_of(s, c, members, x.n);
    if (m) {
        m->at[place(c, members, x.n)] = mine;
        if (++m->arrived == x.n) all_here(call, s, m, x);
        pthread_cond_broadcast(&s->changed);
        while (m->arrived < x.n ? !s->status : !m->ready) wait_for_change(call, s);
        if (m->arrived < x.n) m = NULL;
    } else {
        fail(s, JAXCC_MEMORY, "no memory");
    }
    *status = s->status;
    pthread_mutex_unlock(&s->lock);
    if (!m) jaxcc_rt_stop(call, *status, "another device ended");
    *status = m->status || m->done ? m->status : follow_others(call, m);
    return m;
}
/* Waits until all members are here for the k-th time. */
static void wait_for_all(jaxcc_rt_heap *call, State *s, Meeting *m, int64_t k) {
    pthread_mutex_lock(&s->lock);
    m->left++;
    pthread_cond_broadcast(&s->changed);
    while (m->left < k * m->n) wait_for_change(call, s);
    pthread_mutex_unlock(&s->lock);
}
/* Waits until all have read: until then the data of each must stay, even if one has failed. Devices of several inner
   programs also wait until they have followed each other: one of the programs may end. What was moved for all at once
   stays until then without that. */
static void part(jaxcc_rt_heap *call, Meeting *m, int32_t status) {
    const jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    State *s = c->state;
    int64_t times = m->done ? 0 : c->level > 1 ? 2 : 1;
    if (!status && times) status = c->how->mark(call);
    if (times) wait_for_all(call, s, m, 1);
    if (!status && times) status = follow_others(call, m);
    if (times == 2) wait_for_all(call, s, m, 2);
    pthread_mutex_lock(&s->lock);
    if (++m->left == (times + 1) * m->n) { /* the last one to leave */
        Meeting **p = &s->open;
        while (*p != m) p = &(*p)->next;
        *p = m->next;
        free(m);
    }
    pthread_mutex_unlock(&s->lock);
    end_if(call, status);
}

/* ---- exchanges */
int64_t jaxcc_rt_exchange_pieces(const jaxcc_rt_exchange *x) { return x->kind == JAXCC_RT_PERMUTE ? 1 : x->n; }
jaxcc_rt_piece jaxcc_rt_exchange_piece(const jaxcc_rt_exchange *x, int64_t me, int64_t k) {
    if (x->kind != JAXCC_RT_PERMUTE) return (jaxcc_rt_piece){k, x->kind == JAXCC_RT_PARTS ? me * x->bytes : 0};
    int64_t from = me < x->n_from ? x->from[me] : -1;
    return (jaxcc_rt_piece){from < x->n ? from : -1, 0};
}
/* The members' pieces for this device, which begins with its own, so that they do not all read from the same one. */
static int32_t get_pieces(jaxcc_rt_heap *call, const jaxcc_rt_exchange *x, const Meeting *m, int64_t me) {
    const jaxcc_rt_devices *how = m->at[me].comm->how;
    int64_t n = jaxcc_rt_exchange_pieces(x);
    int32_t status = 0;
    for (int64_t i = 0; i < n && !status; i++) {
        int64_t k = (me + i) % n;
        jaxcc_rt_piece p = jaxcc_rt_exchange_piece(x, me, k);
        const jaxcc_rt_member *from = p.member < 0 ? NULL : &m->at[p.member];
        char *to = (char *)m->at[me].result + k * x->bytes;
        if (!from)
            status = how->zero(call, to, x->bytes);
        else if (!m->done)
            status = how->copy(call, to, from->comm, (const char *)from->data + p.offset, x->bytes);
    }
    return status;
}
/* arrays: the device's data, its result. */
static void exchange(jaxcc_rt_heap *call, const int64_t *members, int64_t me, jaxcc_rt_exchange x,
                     void *const *arrays) {
    int32_t status;
    jaxcc_rt_member mine = {jaxcc_rt_comm_of(call), arrays[0], arrays[1]};
    Meeting *m = meet(call, members, x, mine, &status);
    if (!status) status = get_pieces(call, &x, m, me);
    part(call, m, status);
}

/* ---- spmd */
typedef struct {
    jaxcc_rt_comm comm;
    pthread_t thread;
} Device;

static void *device(void *user) {
    Device *d = user;
    int32_t status = d->comm.how->run(&d->comm);
    if (status) fail_locked(d->comm.state, status, jaxcc_rt_error());
    return NULL;
}
/* a: an extent for each symbol, the inputs, this device's parts of the outputs */
static void arguments(void **a, const jaxcc_rt_spmd_program *p, int64_t k) {
    for (int64_t i = 0; i < p->n_dims; i++) memcpy(&a[i], &p->dims[i], sizeof *p->dims);
    a += p->n_dims;
    for (int64_t i = 0; i < p->n_in; i++) a[i] = p->arrays[i];
    for (int64_t i = 0; i < p->n_out; i++) a[p->n_in + i] = (char *)p->arrays[p->n_in + i] + k * p->out_bytes[i];
}
/* The devices of a nested program are numbered consecutively across the devices of the enclosing one, so that they can
   meet across them; all share one state. */
static jaxcc_rt_comm first_of(const jaxcc_rt_comm *around, const jaxcc_rt_devices *how, const jaxcc_rt_spmd_program *p,
                              State *own) {
    jaxcc_rt_comm c = {.devices = p->devices, .level = 1, .state = own, .how = how, .program = p};
    if (!around) return c;
    c.device = around->device * p->devices;
    c.devices = around->devices * p->devices;
    c.level = around->level + 1;
    c.state = around->state;
    return c;
}
static void run_all(Device *d, void **args, jaxcc_rt_comm first) {
    const jaxcc_rt_spmd_program *p = first.program;
    int64_t each = p->n_dims + p->n_in + p->n_out + 1, started = 0;
    for (; started < p->devices; started++) {
        jaxcc_rt_comm *c = &d[started].comm;
        *c = first;
        c->device += started;
        c->place = started;
        c->args = args + started * each;
        arguments(c->args, p, started);
        if (pthread_create(&d[started].thread, NULL, device, &d[started])) break;
    }
    if (started < p->devices) /* running devices must not wait for those that did not start */
        fail_locked(first.state, JAXCC_MEMORY, "no memory for the threads of all devices");
    for (int64_t i = 0; i < started; i++) pthread_join(d[i].thread, NULL);
}
int32_t jaxcc_rt_spmd_run(jaxcc_rt_heap *call, const jaxcc_rt_devices *how, const jaxcc_rt_spmd_program *p) {
    State own = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    jaxcc_rt_comm first = first_of(jaxcc_rt_comm_of(call), how, p, &own);
    State *s = first.state;
    Device *d = calloc((size_t)p->devices, sizeof *d);
    void **args = calloc((size_t)(p->devices * (p->n_dims + p->n_in + p->n_out + 1)), sizeof *args);
    if (d && args)
        run_all(d, args, first);
    else
        fail_locked(s, JAXCC_MEMORY, "no memory for the threads of all devices");
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
    return status ? jaxcc_rt_fail_text(status, s->text) : 0;
}
jaxcc_rt_spmd_program jaxcc_rt_spmd_program_of(void *const *arrays, const int64_t *sizes,
                                               void (*body)(void *args, jaxcc_rt_heap *)) {
    const int64_t *dims = sizes + 5, *out_bytes = dims + sizes[4];
    return (jaxcc_rt_spmd_program){.devices = sizes[0],
                                   .n_in = sizes[1],
                                   .n_out = sizes[2],
                                   .workspace = sizes[3],
                                   .n_dims = sizes[4],
                                   .dims = dims,
                                   .out_bytes = out_bytes,
                                   .in_bytes = out_bytes + sizes[2],
                                   .arrays = arrays,
                                   .body = body};
}

/* ---- on the host: nothing is asynchronous */
static int32_t host_run(jaxcc_rt_comm *c) {
    const jaxcc_rt_spmd_program *p = c->program;
    void *workspace = p->workspace ? jaxcc_rt_workspace_get(p->workspace) : NULL;
    if (p->workspace && !workspace) return jaxcc_rt_fail_memory(p->workspace, "");
    c->args[p->n_dims + p->n_in + p->n_out] = workspace;
    int32_t status = jaxcc_rt_device_run(p->body, c->args, c);
    if (workspace) jaxcc_rt_workspace_put(workspace);
    return status;
}
static int32_t host_mark(jaxcc_rt_heap *call) { return 0; }
static int32_t host_follow(jaxcc_rt_heap *call, const jaxcc_rt_comm *other) { return 0; }
static int32_t host_copy(jaxcc_rt_heap *call, void *to, const jaxcc_rt_comm *owner, const void *from, int64_t bytes) {
    jaxcc_rt_copy(to, from, bytes);
    return 0;
}
static int32_t host_zero(jaxcc_rt_heap *call, void *to, int64_t bytes) {
    memset(to, 0, (size_t)bytes);
    return 0;
}

void jaxcc_rt_spmd(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes,
                   void (*body)(void *args, jaxcc_rt_heap *)) {
    static const jaxcc_rt_devices host = {host_run, host_mark, host_follow, host_copy, host_zero, NULL, NULL};
    jaxcc_rt_spmd_program p = jaxcc_rt_spmd_program_of(arrays, sizes, body);
    int32_t status = jaxcc_rt_spmd_run(call, &host, &p);
    end_if(call, status);
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
void jaxcc_rt_device(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    *(int32_t *)arrays[0] = jaxcc_rt_device_number(call);
}
int32_t jaxcc_rt_device_number(jaxcc_rt_heap *call) { return (int32_t)jaxcc_rt_comm_of(call)->device; }
/* The members' data, concatenated. */
void jaxcc_rt_all_gather(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    const jaxcc_rt_comm *c = jaxcc_rt_comm_of(call);
    int64_t *members, me, n = group(call, sizes + 1, &members, &me), bytes = sizes[0];
    exchange(call, members, me, (jaxcc_rt_exchange){.kind = JAXCC_RT_GATHER, .n = n, .bytes = bytes}, arrays);
    jaxcc_rt_heap_put(call, members);
    for (int64_t each = sizes[3 + 2 * sizes[1]]; n < each; n++) /* without a member: any values of the type */
        end_if(call, c->how->copy(call, (char *)arrays[1] + n * bytes, c, arrays[0], bytes));
}
/* Each member's data are parts for all members; the result: the parts that they have for this device. */
void jaxcc_rt_all_to_all(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t *members, me, n = group(call, sizes + 1, &members, &me);
    exchange(call, members, me, (jaxcc_rt_exchange){.kind = JAXCC_RT_PARTS, .n = n, .bytes = sizes[0]}, arrays);
    jaxcc_rt_heap_put(call, members);
}
/* After bytes: the place from which each place receives, -1: none, which gives zeros; then the group. */
void jaxcc_rt_permute(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t *members, me, n = group(call, sizes + 2 + sizes[1], &members, &me);
    jaxcc_rt_exchange x = {.kind = JAXCC_RT_PERMUTE, .n = n, .bytes = sizes[0], .from = sizes + 2, .n_from = sizes[1]};
    exchange(call, members, me, x, arrays);
    jaxcc_rt_heap_put(call, members);
}
