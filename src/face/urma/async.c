// SPDX-License-Identifier: MIT
// Import and bind whose outcome comes by notice. What may take long is reaching the peer's process: each
// notifier has a thread that does so, one job after the other in the order of the calls. A handle that is
// given back, or a jetty that is unbound or deleted, takes its jobs with it: no notice comes for them.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "face/urma/urma_face.h"

enum { LONGEST_MS = 2000, SLICE_MS = 10 }; // how long a job may take that names no time; between two looks

struct job {
    urma_notify_t what; // as the program will see it
    struct ur_target *target;
    urma_jetty_t *jetty; // NULL: an import
    uint32_t ms;
    dock_a32 dropped;
    struct job *next;
};

struct ur_notifier {
    urma_notifier_t n;
    struct ur_notifier *next;
    pthread_t worker;
    dock_a32 leaving;
    struct job *running;
    struct job *todo, **todo_end;
    struct job *done, **done_end; // the descriptor counts them
};

// One lock for all: jobs are few, and who drops a handle looks at every notifier.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct ur_notifier *notifiers;

// ---- the thread

static int reach(struct ur_notifier *n, struct job *j)
{
    uint64_t end = dock_now_ns() + j->ms * 1000000ull;
    const urma_jetty_id_t *id = &j->target->t.id;
    int err;

    do
        err = dock_reach(ur_dev(n->n.urma_ctx), id->eid.raw, id->id, SLICE_MS);
    while (err == -EAGAIN && dock_now_ns() < end && !dock_peek32(&j->dropped) && !dock_peek32(&n->leaving));
    return err;
}

// A peer that does not exist is found out by the first request, as after urma_import_jetty.
static void run(struct ur_notifier *n, struct job *j)
{
    if (reach(n, j) == -EAGAIN)
        j->what.status = dock_refuse(URMA_ETIMEOUT, "%s: the process of target %u has not answered in %u ms",
                                     j->jetty ? "urma_bind_jetty_async" : "urma_import_jetty_async",
                                     j->target->t.id.id, j->ms);
    else if (j->jetty)
        j->what.status = urma_bind_jetty(j->jetty, &j->target->t);
}

static void append(struct job *j, struct job ***end)
{
    j->next = NULL;
    **end = j;
    *end = &j->next;
}

static struct job *first_of(struct job **list, struct job ***end)
{
    struct job *j = *list;

    if (j && !(*list = j->next))
        *end = list;
    return j;
}

static void *work(void *arg)
{
    struct ur_notifier *n = arg;
    uint64_t one = 1;

    pthread_mutex_lock(&lock);
    while (!dock_peek32(&n->leaving)) {
        n->running = first_of(&n->todo, &n->todo_end);
        if (!n->running) {
            pthread_cond_wait(&change, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        run(n, n->running);
        pthread_mutex_lock(&lock);
        if (dock_peek32(&n->running->dropped)) {
            free(n->running);
        } else {
            append(n->running, &n->done_end);
            if (write(n->n.fd, &one, sizeof one) < 0)
                dock_error("a notice was not told: the descriptor of its notifier is full or gone");
        }
        n->running = NULL;
        pthread_cond_broadcast(&change);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

// The program's signals are for its own threads.
static int start(struct ur_notifier *n)
{
    sigset_t all, was;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    err = pthread_create(&n->worker, NULL, work, n);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return err ? dock_refuse(-err, "urma_create_notifier: no thread") : 0;
}

// ---- notifiers

urma_notifier_t *urma_create_notifier(urma_context_t *ctx)
{
    struct ur_notifier *n;
    int err;

    if (!ctx)
        return ur_none(dock_refuse(-EINVAL, "urma_create_notifier: no context given"));
    n = calloc(1, sizeof *n);
    if (!n)
        return ur_none(dock_no_memory("a notifier"));
    n->n.urma_ctx = ctx;
    n->todo_end = &n->todo;
    n->done_end = &n->done;
    n->n.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    err = n->n.fd < 0 ? dock_refuse(-errno, "urma_create_notifier: no descriptor") : start(n);
    if (err)
        goto no_thread;
    pthread_mutex_lock(&lock);
    n->next = notifiers;
    notifiers = n;
    pthread_mutex_unlock(&lock);
    ur_use(&ctx->ref);
    return &n->n;

no_thread:
    if (n->n.fd >= 0)
        close(n->n.fd);
    free(n);
    return ur_none(err);
}

static void forget_all(struct job *list)
{
    while (list) {
        struct job *gone = list;
        list = gone->next;
        free(gone);
    }
}

urma_status_t urma_delete_notifier(urma_notifier_t *notifier)
{
    struct ur_notifier *n = (struct ur_notifier *)notifier;

    if (!notifier)
        return dock_refuse(URMA_EINVAL, "urma_delete_notifier: no notifier given");
    pthread_mutex_lock(&lock);
    dock_set32(&n->leaving, 1);
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    pthread_join(n->worker, NULL);
    pthread_mutex_lock(&lock);
    for (struct ur_notifier **at = &notifiers; *at; at = &(*at)->next)
        if (*at == n) {
            *at = n->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    forget_all(n->todo);
    forget_all(n->done);
    close(notifier->fd);
    ur_drop(&notifier->urma_ctx->ref);
    free(n);
    return URMA_SUCCESS;
}

// ---- jobs

static void give(struct ur_notifier *n, struct job *j, int timeout)
{
    j->ms = timeout > 0 ? (uint32_t)timeout : LONGEST_MS;
    pthread_mutex_lock(&lock);
    append(j, &n->todo_end);
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

static bool concerns(const struct job *j, const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    return j && ((target && &j->target->t == target) || (jetty && j->jetty == jetty));
}

static void drop_waiting(struct ur_notifier *n, const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    for (struct job **at = &n->todo; *at;) {
        struct job *j = *at;
        if (!concerns(j, target, jetty)) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        if (n->todo_end == &j->next)
            n->todo_end = at;
        free(j);
    }
}

void ur_drop_jobs(const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    struct ur_notifier *n;

    pthread_mutex_lock(&lock);
    for (n = notifiers; n; n = n->next)
        drop_waiting(n, target, jetty);
again:
    for (n = notifiers; n; n = n->next)
        if (concerns(n->running, target, jetty)) {
            dock_set32(&n->running->dropped, 1);
            pthread_cond_wait(&change, &lock);
            goto again; // notifiers may have come and gone
        }
    pthread_mutex_unlock(&lock);
}

urma_target_jetty_t *urma_import_jetty_async(urma_notifier_t *notifier, const urma_rjetty_t *rjetty,
                                             const urma_token_t *token_value, uint64_t user_ctx, int timeout)
{
    urma_target_jetty_t *t;
    struct job *j;

    if (!notifier || !rjetty || (!token_value && rjetty->flag.bs.token_policy != URMA_TOKEN_NONE))
        return ur_none(
            dock_refuse(-EINVAL, "urma_import_jetty_async: no notifier, no jetty, or no token for one"));
    j = calloc(1, sizeof *j);
    if (!j)
        return ur_none(dock_no_memory("a notice"));
    t = ur_import_named(notifier->urma_ctx, rjetty, token_value, "urma_import_jetty_async");
    if (!t) {
        free(j);
        return NULL;
    }
    j->what = (urma_notify_t){.type = URMA_IMPORT_JETTY_NOTIFY, .user_ctx = user_ctx, .tjetty = t};
    j->target = ur_target(t);
    give((struct ur_notifier *)notifier, j, timeout);
    return t;
}

urma_status_t urma_unimport_jetty_async(urma_target_jetty_t *tjetty)
{
    return urma_unimport_jetty(tjetty);
}

urma_status_t urma_bind_jetty_async(urma_notifier_t *notifier, urma_jetty_t *jetty,
                                    urma_target_jetty_t *tjetty, uint64_t user_ctx, int timeout)
{
    urma_status_t refused;
    struct job *j;

    if (!notifier || !jetty || !tjetty)
        return dock_refuse(URMA_EINVAL, "urma_bind_jetty_async: no notifier, no jetty, or no target");
    refused = ur_check_bind(jetty, tjetty, "urma_bind_jetty_async");
    if (refused)
        return refused;
    j = calloc(1, sizeof *j);
    if (!j)
        return ur_status(dock_no_memory("a notice"));
    j->what = (urma_notify_t){.type = URMA_BIND_JETTY_NOTIFY, .user_ctx = user_ctx, .jetty = jetty};
    j->target = ur_target(tjetty);
    j->jetty = jetty;
    give((struct ur_notifier *)notifier, j, timeout);
    return URMA_SUCCESS;
}

urma_status_t urma_unbind_jetty_async(urma_jetty_t *jetty)
{
    return urma_unbind_jetty(jetty);
}

// ---- waiting

static uint32_t take(struct ur_notifier *n, uint32_t most, urma_notify_t *out)
{
    uint32_t got = 0;
    uint64_t one;

    pthread_mutex_lock(&lock);
    while (got < most && n->done && read(n->n.fd, &one, sizeof one) == sizeof one) {
        struct job *j = first_of(&n->done, &n->done_end);
        out[got++] = j->what;
        free(j);
    }
    pthread_mutex_unlock(&lock);
    return got;
}

int urma_wait_notify(urma_notifier_t *notifier, uint32_t cnt, urma_notify_t *notify, int timeout)
{
    uint64_t end = timeout > 0 ? dock_now_ns() + (uint64_t)timeout * 1000000 : 0;

    if (!notifier || !notify) {
        errno = dock_refuse(EINVAL, "urma_wait_notify: no notifier, or no place for notices");
        return -1;
    }
    while (cnt) {
        uint32_t got = take((struct ur_notifier *)notifier, cnt, notify);
        if (got)
            return (int)got;
        int ready = ur_wait_readable(notifier->fd, timeout, end);
        if (ready <= 0)
            return ready;
    }
    return 0;
}

// Waiting took the notice: nothing is left to acknowledge.
urma_status_t urma_ack_notify(urma_context_t *ctx, uint32_t cnt, urma_notify_t *notify)
{
    if (!ctx || !notify)
        return dock_refuse(URMA_EINVAL, "urma_ack_notify: no context, or no notices (%u)", cnt);
    return URMA_SUCCESS;
}
