/* Device memory: areas between pages that may not be touched, each with a map of the bytes that were written. */
#include "memory.h"
#include <stdlib.h>
#include <sys/mman.h>

PtxOptions ptx_options;
PtxCounts ptx_counts;
int ptx_device;

enum { PAGE = 4096, POISON = 0xA5 };
static struct {
    Area *at;              /* by address */
    uint32_t n, cap, last; /* last: found last */
} areas;

/* What stands between areas: an address just beyond one belongs to none. */
static size_t room_for(size_t bytes) { return (bytes + 2 * PAGE - 1) & ~(size_t)(PAGE - 1); }
static void *map(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
/* The first area that begins after this address. */
static uint32_t after(uint64_t host) {
    uint32_t low = 0, high = areas.n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (areas.at[middle].at <= host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
static bool insert_area(Area a) {
    if (areas.n == areas.cap) {
        uint32_t cap = areas.cap ? 2 * areas.cap : 64;
        Area *more = realloc(areas.at, cap * sizeof *more);
        if (!more) return false;
        areas.at = more, areas.cap = cap;
    }
    uint32_t i = after(a.at);
    memmove(areas.at + i + 1, areas.at + i, (areas.n++ - i) * sizeof *areas.at);
    areas.at[i] = a;
    return true;
}
uint64_t ptx_alloc(size_t bytes) {
    if (bytes > SIZE_MAX / 4) return 0;
    size_t room = room_for(bytes);
    uint8_t *p = map(2 * room); /* the bytes, then their map */
    if (!p) return 0;
    memset(p, POISON, bytes);
    if (!insert_area((Area){.at = (uint64_t)p, .bytes = bytes, .device = ptx_device, .written = p + room})) {
        munmap(p, 2 * room);
        return 0;
    }
    return (uint64_t)p + PTX_DEVICE_BIAS;
}
bool ptx_free(uint64_t device) {
    uint64_t host = device - PTX_DEVICE_BIAS;
    uint32_t i = after(host);
    if (i == 0 || areas.at[i - 1].at != host) return false;
    Area *a = &areas.at[i - 1];
    shadow_drop(&a->shadow);
    munmap((void *)a->at, 2 * room_for(a->bytes));
    memmove(a, a + 1, (areas.n-- - i) * sizeof *a);
    areas.last = 0;
    return true;
}
static bool holds(const Area *a, uint64_t host, uint64_t bytes) {
    return host >= a->at && bytes <= a->bytes && host - a->at <= a->bytes - bytes;
}
Area *area_find(uint64_t device, uint64_t bytes) {
    uint64_t host = device - PTX_DEVICE_BIAS;
    if (device < PTX_DEVICE_BIAS) return NULL;
    if (areas.last < areas.n && holds(&areas.at[areas.last], host, bytes)) return &areas.at[areas.last];
    uint32_t i = after(host);
    if (i == 0 || !holds(&areas.at[i - 1], host, bytes)) return NULL;
    areas.last = i - 1;
    return &areas.at[i - 1];
}
Area *area_here(uint64_t device, uint64_t bytes) {
    Area *a = area_find(device, bytes);
    return a && a->device == ptx_device ? a : NULL;
}
void *ptx_host(uint64_t device, size_t bytes) {
    if (ptx_options.host && device < PTX_DEVICE_BIAS) return (void *)device;
    return area_find(device, bytes) ? (void *)(device - PTX_DEVICE_BIAS) : NULL;
}
size_t ptx_run(uint64_t device, size_t bytes, bool written) {
    const Area *a = area_find(device, bytes);
    if (!a) return written ? bytes : 0;
    const uint8_t *at = a->written + (device - PTX_DEVICE_BIAS - a->at), *end = memchr(at, !written, bytes);
    return end ? (size_t)(end - at) : bytes;
}
bool ptx_written(uint64_t device, size_t bytes) { return ptx_run(device, bytes, true) == bytes; }
void ptx_mark_written(uint64_t device, size_t bytes) {
    const Area *a = area_find(device, bytes);
    if (a) memset(a->written + (device - PTX_DEVICE_BIAS - a->at), 1, bytes);
}

/* Shadows of memory that was given back: what is in them is older than any launch to come, so that they serve as they
   are. */
enum { SPARE_SHADOWS = 32 };
static Shadow spare[SPARE_SHADOWS];

void shadow_forget(Shadow *s) {
    if (s->words) munmap(s->words, s->size * sizeof(Touched) / 4 + PAGE);
    if (s->bytes) munmap(s->bytes, s->size * sizeof(Touched) + PAGE);
    *s = (Shadow){0};
}
void shadow_drop(Shadow *s) {
    uint32_t smallest = 0;
    for (uint32_t k = 1; k < SPARE_SHADOWS; k++)
        if (spare[k].size < spare[smallest].size) smallest = k;
    if (s->size > spare[smallest].size) {
        Shadow was = spare[smallest];
        spare[smallest] = *s, *s = was;
    }
    shadow_forget(s);
}
void shadow_reset(void) {
    for (uint32_t i = 0; i < areas.n; i++) shadow_forget(&areas.at[i].shadow);
    for (uint32_t k = 0; k < SPARE_SHADOWS; k++) shadow_forget(&spare[k]);
}
static Shadow take_spare(uint64_t bytes) {
    uint32_t best = SPARE_SHADOWS;
    for (uint32_t k = 0; k < SPARE_SHADOWS; k++)
        if (spare[k].size >= bytes && (best == SPARE_SHADOWS || spare[k].size < spare[best].size)) best = k;
    if (best == SPARE_SHADOWS) return (Shadow){0};
    Shadow s = spare[best];
    spare[best] = (Shadow){0};
    return s;
}
bool shadow_make(Shadow *s, uint64_t bytes) {
    if (s->words && s->size >= bytes) return true;
    shadow_drop(s);
    *s = take_spare(bytes);
    if (s->words) return true;
    s->size = (bytes + 3) & ~(uint64_t)3;
    s->words = map(s->size * sizeof(Touched) / 4 + PAGE);
    s->bytes = map(s->size * sizeof(Touched) + PAGE);
    if (s->words && s->bytes) return true;
    shadow_forget(s);
    return false;
}
