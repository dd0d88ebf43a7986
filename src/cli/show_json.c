// SPDX-License-Identifier: MIT
// JSON by hand: numbers, and three kinds of text of which only the program's name needs escaping.
#include "cli/show.h"

#include <inttypes.h>

#include "base/probe.h"

static void put_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        // Bytes beyond ASCII are shown as Latin-1, so that the output is valid whatever the name holds.
        if (c < 0x20 || c == '"' || c == '\\' || c > 0x7e)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static void put_number(FILE *to, const char *name, uint64_t value)
{
    fprintf(to, ", \"%s\": %" PRIu64, name, value);
}

static void put_queue(FILE *to, const struct look_queue *q)
{
    fprintf(to, "{\"queue\": %" PRIu32 ", \"kind\": \"%s\", \"service\": \"%s\", \"state\": \"%s\"", q->id,
            look_kind_name(q->kind), look_service_name(q->service), look_state_name(q->state));
    put_number(to, "peer_queue", q->peer_id);
    put_number(to, "peer_device", q->peer_who);
    put_number(to, "depth", q->depth);
    put_number(to, "posted", q->posted);
    put_number(to, "rings", q->rings);
    put_number(to, "executed", q->executed);
    put_number(to, "completions", q->cqes);
    put_number(to, "bytes_out", q->bytes_out);
    put_number(to, "rnr", q->rnr);
    put_number(to, "by_poster", q->by_poster);
    put_number(to, "by_poller", q->by_poller);
    put_number(to, "by_engine", q->by_engine);
    put_number(to, "messages_in", q->messages_in);
    put_number(to, "bytes_in", q->bytes_in);
    fprintf(to, ", \"damaged\": %s}", q->damaged ? "true" : "false");
}

static void put_counters(FILE *to, const struct look_device *d)
{
    put_number(to, "up_ns", d->up_ns);
    put_number(to, "completion_queues", d->ncqs);
    put_number(to, "arena_bytes", d->arena_bytes);
    put_number(to, "fallback_bytes", d->fallback_bytes);
    put_number(to, "fallback_calls", d->fallback_calls);
    put_number(to, "dropped", d->dropped);
    put_number(to, "adopted_bytes", d->adopted_bytes);
    put_number(to, "adopted_huge_bytes", d->adopted_huge);
    put_number(to, "adopted_ever", d->adopted_ever);
    put_number(to, "adopt_stops", d->stops);
    put_number(to, "adopt_stopped_ns", d->stopped_ns);
    put_number(to, "forked_bytes", d->forked_bytes);
    fprintf(to, ", \"not_adopted\": {");
    for (int i = 1; i < DOCK_WHYS; i++)
        fprintf(to, "%s\"%s\": %" PRIu64, i > 1 ? ", " : "", dock_adopt_why_name[i], d->not_adopted[i]);
    fprintf(to, "}");
    put_number(to, "shmem_puts", d->stores[DOCK_STORE_PUT]);
    put_number(to, "shmem_gets", d->stores[DOCK_STORE_GET]);
    put_number(to, "shmem_atomics", d->stores[DOCK_STORE_ATOMIC]);
    fprintf(to, ", \"fatal\": %s, \"moments\": {", d->fatal ? "true" : "false");
    for (int i = 0, any = 0; i < DOCK_MOMENT_COUNT; i++)
        if (look_counted(i))
            fprintf(to, "%s\"%s\": %" PRIu64, any++ ? ", " : "", dock_moment_name[i], d->moment[i]);
    fprintf(to, "}");
}

static void put_device(FILE *to, const struct look_device *d)
{
    static const char *const answers[] = {
        [LOOK_READ] = "read", [LOOK_SILENT] = "silent", [LOOK_REFUSED] = "refused"};

    fprintf(to, "{\"process\": %d, \"answer\": \"%s\"", d->pid, answers[d->answer]);
    put_number(to, "device", d->who);
    if (d->answer == LOOK_READ) {
        fprintf(to, ", \"program\": ");
        put_text(to, d->program);
        put_counters(to, d);
        fprintf(to, ", \"queues\": [");
        for (size_t i = 0; i < d->nqueues; i++) {
            fprintf(to, i ? ",\n    " : "\n    ");
            put_queue(to, &d->queue[i]);
        }
        fprintf(to, "]");
    }
    fprintf(to, "}");
}

void show_json(FILE *to, const struct look *look)
{
    fprintf(to, "[");
    for (size_t i = 0; i < look->ndevices; i++) {
        fprintf(to, i ? ",\n  " : "\n  ");
        put_device(to, &look->device[i]);
    }
    fprintf(to, "\n]\n");
}
