// SPDX-License-Identifier: MIT
#include "cli/show.h"

#include <inttypes.h>

#include "base/probe.h"

static void print_device(FILE *to, const struct look_device *d)
{
    fprintf(to, "process %d  %s  device %u.%u  up %.1f s%s\n", d->pid, d->program, dock_who_slot(d->who),
            dock_who_incarnation(d->who), (double)d->up_ns / 1e9, d->fatal ? "  FATAL" : "");
    fprintf(to,
            "  %zu queues, %" PRIu32 " completion queues; peers moved %" PRIu64
            " bytes through its arena, %" PRIu64 " bytes by %" PRIu64 " process_vm calls; dropped %" PRIu64
            "\n",
            d->nqueues, d->ncqs, d->arena_bytes, d->fallback_bytes, d->fallback_calls, d->dropped);
}

static void print_adoption(FILE *to, const struct look_device *d)
{
    bool any = false;

    if (d->adopted_ever)
        fprintf(to,
                "  adopted %" PRIu64 " bytes, %" PRIu64 " in huge pages, %" PRIu64 " ever, in %" PRIu64
                " stops of %.1f ms in all; %" PRIu64 " bytes copied for forked children\n",
                d->adopted_bytes, d->adopted_huge, d->adopted_ever, d->stops, (double)d->stopped_ns / 1e6,
                d->forked_bytes);
    for (int i = 1; i < DOCK_WHYS; i++) {
        if (!d->not_adopted[i])
            continue;
        fprintf(to, "%s %s %" PRIu64, any ? "," : "  not adopted:", dock_adopt_why_name[i],
                d->not_adopted[i]);
        any = true;
    }
    if (any)
        fprintf(to, "\n");
}

static void print_moments(FILE *to, const struct look_device *d)
{
    bool any = false;

    for (int i = 0; i < DOCK_MOMENT_COUNT; i++) {
        if (!d->moment[i])
            continue;
        fprintf(to, "%s %s %" PRIu64, any ? "," : "  moments:", dock_moment_name[i], d->moment[i]);
        any = true;
    }
    if (any)
        fprintf(to, "\n");
}

static void print_stores(FILE *to, const struct look_device *d)
{
    const uint64_t *n = d->stores;

    if (n[DOCK_STORE_PUT] || n[DOCK_STORE_GET] || n[DOCK_STORE_ATOMIC])
        fprintf(to, "  OpenSHMEM without a queue: %" PRIu64 " puts, %" PRIu64 " gets, %" PRIu64 " atomics\n",
                n[DOCK_STORE_PUT], n[DOCK_STORE_GET], n[DOCK_STORE_ATOMIC]);
}

static void print_queue(FILE *to, const struct look_queue *q)
{
    char peer[24] = "-";

    if (q->peer_who)
        snprintf(peer, sizeof(peer), "%" PRIu32 "@%u", q->peer_id, dock_who_slot(q->peer_who));
    fprintf(to, "  %7" PRIu32 " %-5s %-3s %-9s %12s %6" PRIu32, q->id, look_kind_name(q->kind),
            look_service_name(q->service), look_state_name(q->state), peer, q->depth);
    fprintf(to,
            " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %14" PRIu64 " %10" PRIu64 " %14" PRIu64 " %6" PRIu64
            "%s\n",
            q->posted, q->executed, q->cqes, q->bytes_out, q->messages_in, q->bytes_in, q->rnr,
            q->damaged ? "  DAMAGED" : "");
}

static void print_queues(FILE *to, const struct look_device *d)
{
    if (!d->nqueues)
        return;
    fprintf(to, "  %7s %-5s %-3s %-9s %12s %6s %10s %10s %10s %14s %10s %14s %6s\n", "queue", "kind", "svc",
            "state", "peer", "depth", "posted", "executed", "cqes", "bytes out", "msgs in", "bytes in",
            "rnr");
    for (size_t i = 0; i < d->nqueues; i++)
        print_queue(to, &d->queue[i]);
}

void show_table(FILE *to, const struct look *look)
{
    if (!look->ndevices)
        fprintf(to, "no live device in this runtime directory\n");
    for (size_t i = 0; i < look->ndevices; i++) {
        const struct look_device *d = &look->device[i];

        if (d->answer == LOOK_READ) {
            print_device(to, d);
            print_adoption(to, d);
            print_moments(to, d);
            print_stores(to, d);
            print_queues(to, d);
        } else {
            fprintf(to, "process %d  device %u.%u  %s\n", d->pid, dock_who_slot(d->who),
                    dock_who_incarnation(d->who),
                    d->answer == LOOK_SILENT ? "does not answer (stopped?)" : "is of another version");
        }
    }
}
