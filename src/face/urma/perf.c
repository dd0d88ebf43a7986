// SPDX-License-Identifier: MIT
// Latencies in buckets whose width is a sixteenth of their value, so that a quantile is off by 6 % at most.
#include "face/urma/perf.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { FINE = 4, BUCKETS = (64 - FINE) << FINE };

// Relaxed throughout: counts of events, read as a whole only when the program stopped counting.
struct record {
    atomic_ulong bucket[BUCKETS];
    atomic_ulong sum;
};

atomic_bool ur_perf_on;
static struct record records[URMA_PERF_RECORD_TYPE_MAX];

static unsigned bucket_of(uint64_t ns)
{
    unsigned top;

    if (ns < 2u << FINE)
        return (unsigned)ns;
    top = 63u - (unsigned)__builtin_clzll(ns);
    return ((top - FINE) << FINE) + (unsigned)(ns >> (top - FINE));
}

static uint64_t least_of(unsigned bucket)
{
    unsigned shift = bucket < 2u << FINE ? 0 : (bucket >> FINE) - 1;

    return (uint64_t)(bucket - (shift << FINE)) << shift;
}

void ur_perf_count(urma_perf_record_type_t type, uint64_t began_ns)
{
    uint64_t ns = dock_now_ns() - began_ns;

    atomic_fetch_add_explicit(&records[type].bucket[bucket_of(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&records[type].sum, ns, memory_order_relaxed);
}

static uint64_t samples(const struct record *record)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < BUCKETS; i++)
        n += atomic_load_explicit(&record->bucket[i], memory_order_relaxed);
    return n;
}

// The time that `share` of ten thousand samples did not exceed; 0: the shortest.
static uint64_t quantile(const struct record *record, uint64_t n, unsigned share)
{
    uint64_t want = share ? (n * share + 9999) / 10000 : 1;

    for (unsigned i = 0; i < BUCKETS; i++) {
        uint64_t here = atomic_load_explicit(&record->bucket[i], memory_order_relaxed);

        if (here >= want)
            return least_of(i);
        want -= here;
    }
    return 0;
}

urma_status_t urma_start_perf(void)
{
    for (int type = 0; type < URMA_PERF_RECORD_TYPE_MAX; type++) {
        for (unsigned i = 0; i < BUCKETS; i++)
            atomic_store_explicit(&records[type].bucket[i], 0, memory_order_relaxed);
        atomic_store_explicit(&records[type].sum, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&ur_perf_on, true, memory_order_relaxed);
    return URMA_SUCCESS;
}

urma_status_t urma_stop_perf(void)
{
    atomic_store_explicit(&ur_perf_on, false, memory_order_relaxed);
    return URMA_SUCCESS;
}

static int print_record(char *text, size_t room, const char *name, const struct record *record)
{
    uint64_t n = samples(record);
    uint64_t sum = atomic_load_explicit(&record->sum, memory_order_relaxed);

    return snprintf(text, room, "%-18s %10lu %8lu %8lu %8lu %8lu %8lu %8lu\n", name, n, n ? sum / n : 0,
                    n ? quantile(record, n, 0) : 0, n ? quantile(record, n, 10000) : 0,
                    n ? quantile(record, n, 9000) : 0, n ? quantile(record, n, 9900) : 0,
                    n ? quantile(record, n, 9999) : 0);
}

urma_status_t urma_get_perf_info(char *perf_buf, uint32_t *length)
{
    static const struct {
        const char *name;
        urma_perf_record_type_t type;
    } rows[] = {
        {"jetty_post_send", UB_JETTY_POST_SEND},
        {"jfs_post_send", UB_JFS_POST_SEND},
        {"jetty_post_recv", UB_JETTY_POST_RECV},
        {"jfr_post_recv", UB_POST_JFR_RECV},
        {"poll_jfc", UB_POLL_JFC},
        {"wait_jfc", UB_WAIT_JFC},
        {"ack_jfc", UB_ACK_JFC},
        {"rearm_jfc", UB_REARM_JFC},
    };
    char text[2048];
    size_t used;

    if (!perf_buf || !length)
        return (urma_status_t)dock_refuse(URMA_EINVAL, "urma_get_perf_info: an argument is NULL");
    used = (size_t)snprintf(text, sizeof(text), "%-18s %10s %8s %8s %8s %8s %8s %8s\n", "call (ns)",
                            "samples", "average", "least", "most", "90%", "99%", "99.99%");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        used += (size_t)print_record(text + used, sizeof(text) - used, rows[i].name, &records[rows[i].type]);
    if (*length <= used)
        return (urma_status_t)dock_refuse(URMA_EINVAL, "urma_get_perf_info: %zu bytes are needed", used + 1);
    memcpy(perf_buf, text, used + 1);
    *length = (uint32_t)used + 1;
    return URMA_SUCCESS;
}
