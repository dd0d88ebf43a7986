// SPDX-License-Identifier: MIT
#include "device/inbox.h"
#include "base/lock.h"

#include <stdlib.h>

int dock_inbox_open(struct dock_inbox *in)
{
    int err = dock_tokens_open(&in->tokens);

    if (err)
        return err;
    in->head = NULL;
    in->tail = &in->head;
    in->reserve_taken = false;
    pthread_mutex_init(&in->lock, NULL);
    return 0;
}

// The lock is held.
static void discard(struct dock_inbox *in, struct dock_entry *e)
{
    if (e == &in->reserve)
        in->reserve_taken = false;
    else
        free(e);
}

void dock_inbox_close(struct dock_inbox *in)
{
    while (in->head) {
        struct dock_entry *e = in->head;
        in->head = e->next;
        discard(in, e);
    }
    pthread_mutex_destroy(&in->lock);
    dock_tokens_close(&in->tokens);
}

struct dock_entry *dock_inbox_room(struct dock_inbox *in)
{
    struct dock_entry *e = malloc(sizeof *e);

    dock_lock(&in->lock);
    if (!e && !in->reserve_taken) {
        e = &in->reserve;
        in->reserve_taken = true;
    }
    if (e)
        *e = (struct dock_entry){0};
    else
        dock_unlock(&in->lock);
    return e;
}

void dock_inbox_put(struct dock_inbox *in, struct dock_entry *e)
{
    *in->tail = e;
    in->tail = &e->next;
    dock_tokens_add(&in->tokens);
    dock_unlock(&in->lock);
}

static int take_head(struct dock_inbox *in, struct dock_entry *out)
{
    struct dock_entry *e = in->head;

    in->head = e->next;
    if (!e->next)
        in->tail = &in->head;
    *out = *e;
    discard(in, e);
    return 0;
}

int dock_inbox_take(struct dock_inbox *in, struct dock_entry *out)
{
    int err = dock_tokens_take(&in->tokens, &in->lock);

    return err ? err : take_head(in, out);
}

int dock_inbox_try(struct dock_inbox *in, struct dock_entry *out)
{
    int err = dock_tokens_try(&in->tokens, &in->lock);

    return err ? err : take_head(in, out);
}

void dock_inbox_forget(struct dock_inbox *in, const void *object)
{
    dock_lock(&in->lock);
    for (struct dock_entry **at = &in->head; *at;) {
        struct dock_entry *e = *at;
        if (e->event.object != object) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        discard(in, e);
        dock_tokens_drop(&in->tokens, 1);
    }
    for (in->tail = &in->head; *in->tail;)
        in->tail = &(*in->tail)->next;
    dock_unlock(&in->lock);
}
