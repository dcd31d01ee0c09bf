/* How many CPUs this process may use: by affinity, and by the quotas of its control groups. */
#include "pool.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_affinity(void) {
    static const int most[] = {1024, 65536}; /* the kernel refuses a mask shorter than its own */
    for (int i = 0; i < 2; i++) {
        size_t size = CPU_ALLOC_SIZE(most[i]);
        cpu_set_t *set = CPU_ALLOC(most[i]);
        int n = set && !sched_getaffinity(0, size, set) ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0) return n;
    }
    return 1;
}

/* The beginning of a file, terminated; "" if it cannot be read. */
static void read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = 0;
    if (fd >= 0) close(fd);
}

/* The number of CPUs that a quota amounts to, rounded up; `most` without a quota. */
static int by_quota(long long quota, long long period, int most) {
    if (quota <= 0 || period <= 0) return most;
    long long cpus = (quota - 1) / period + 1;
    return cpus < most ? (int)cpus : most;
}

/* Buffers for names and texts, too large for the caller's stack. */
typedef struct {
    char text[8192], folder[4096], path[4200];
} Room;

/* Version 2: "QUOTA PERIOD" in cpu.max; version 1: two files. */
static int by_group(Room *r, int most) {
    char text[64];
    long long quota, period;
    snprintf(r->path, sizeof r->path, "%s/cpu.max", r->folder);
    read_text(r->path, text, sizeof text);
    if (sscanf(text, "%lld %lld", &quota, &period) == 2) most = by_quota(quota, period, most);
    snprintf(r->path, sizeof r->path, "%s/cpu.cfs_quota_us", r->folder);
    read_text(r->path, text, sizeof text);
    if (sscanf(text, "%lld", &quota) != 1) return most;
    snprintf(r->path, sizeof r->path, "%s/cpu.cfs_period_us", r->folder);
    read_text(r->path, text, sizeof text);
    return sscanf(text, "%lld", &period) == 1 ? by_quota(quota, period, most) : most;
}

/* Does the list "cpu,cpuacct" of n bytes hold "cpu"? */
static int has_cpu(const char *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((i == 0 || list[i - 1] == ',') && n - i >= 3 && !memcmp(list + i, "cpu", 3) &&
            (i + 3 == n || list[i + 3] == ','))
            return 1;
    return 0;
}

/* A line "ID:CONTROLLERS:/PATH" of /proc/self/cgroup: the group and its ancestors, up to the mount's root. */
static int by_line(Room *r, char *line, int most) {
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path) return most;
    int version2 = path == list + 1;
    if (!version2 && !has_cpu(list + 1, (size_t)(path - list - 1))) return most;
    int root = snprintf(r->folder, sizeof r->folder, "/sys/fs/cgroup%s", version2 ? "" : "/cpu");
    snprintf(r->folder + root, sizeof r->folder - (size_t)root, "%s", path + 1);
    for (;;) {
        most = by_group(r, most);
        char *slash = strrchr(r->folder + root, '/');
        if (!slash) return most;
        *slash = 0;
    }
}

int jaxcc_rt_cpus(void) {
    int n = by_affinity();
    Room *r = malloc(sizeof *r);
    if (!r) return n;
    read_text("/proc/self/cgroup", r->text, sizeof r->text);
    char *rest, *line = strtok_r(r->text, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest)) n = by_line(r, line, n);
    free(r);
    return n;
}
