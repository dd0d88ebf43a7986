// SPDX-License-Identifier: MIT
// Events that wait for a program to read them: a list, and a descriptor that is readable as long as there is
// one. Adding and taking have two halves, so that what the caller changes with an event changes under its
// lock.
#ifndef DOCK_DEVICE_INBOX_H
#define DOCK_DEVICE_INBOX_H

#include <pthread.h>
#include <stdbool.h>

#include "base/order.h"
#include "device/device.h"
#include "device/tokens.h"

struct dock_entry {
    struct dock_event event;
    dock_a32 *got; // who adds it counts there what was read, or NULL
    struct dock_entry *next;
};

struct dock_inbox {
    pthread_mutex_t lock;
    struct dock_tokens tokens;
    struct dock_entry *head, **tail;
    struct dock_entry reserve; // for an event that comes when the process is out of memory
    bool reserve_taken;
};

int dock_inbox_open(struct dock_inbox *in);   // -errno
void dock_inbox_close(struct dock_inbox *in); // with what waits; nobody else has it any more
// A blank entry for dock_inbox_put, and the lock is held until then. NULL: there is no memory, nor is it
// held.
struct dock_entry *dock_inbox_room(struct dock_inbox *in);
void dock_inbox_put(struct dock_inbox *in, struct dock_entry *e);
// The first one: 0, and the lock is held, for the caller to let go. As dock_tokens_take and dock_tokens_try.
int dock_inbox_take(struct dock_inbox *in, struct dock_entry *out);
int dock_inbox_try(struct dock_inbox *in, struct dock_entry *out);
// Drop what waits of this object.
void dock_inbox_forget(struct dock_inbox *in, const void *object);

#endif
