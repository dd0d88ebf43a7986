// SPDX-License-Identifier: MIT
// Import and bind whose outcome comes by notice. What may take long is reaching the peer's process: each
// notifier has a thread that does so, in the order of the calls; who does not answer soon gives way to the
// others. A handle that is given back, or a jetty that is unbound or deleted, takes its jobs with it: no
// notice comes for them.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/rawcall.h"
#include "face/urma/urma_face.h"

enum { LONGEST_MS = 2000, SLICE_MS = 10 }; // how long a job may take that names no time; between two looks

struct job {
    urma_notify_t what; // as the program will see it
    struct ur_target *target;
    urma_jetty_t *jetty; // NULL: an import
    uint32_t ms;
    uint64_t end; // `ms` after the call
    struct job *next;
};

struct list {
    struct job *first, **end;
};

struct ur_notifier {
    urma_notifier_t n;
    struct ur_notifier *next;
    pthread_t worker;
    bool leaving;
    struct job *running;
    struct list todo, done; // the descriptor counts the done
};

// One lock for all: jobs are few, and who drops a handle looks at every notifier.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct ur_notifier *notifiers;
static unsigned holders; // between ur_hold_jobs and ur_let_jobs_go: no job begins

// ---- lists

static void empty(struct list *l)
{
    *l = (struct list){.end = &l->first};
}

static void append(struct list *l, struct job *j)
{
    j->next = NULL;
    *l->end = j;
    l->end = &j->next;
}

static struct job *take_first(struct list *l)
{
    struct job *j = l->first;

    if (j && !(l->first = j->next))
        l->end = &l->first;
    return j;
}

static void forget_all(struct list *l)
{
    struct job *j;

    while ((j = take_first(l)))
        free(j);
}

static bool order_matters(const struct job *a, const struct job *b)
{
    return a->target == b->target || (a->jetty && a->jetty == b->jetty);
}

// With those behind it that may not overtake it, nor one of these: an import ends before the binds to it.
static void to_the_end(struct list *todo, struct job *first)
{
    struct list stay, go;
    struct job *j, *i;

    empty(&stay);
    empty(&go);
    append(&go, first);
    while ((j = take_first(todo))) {
        for (i = go.first; i && !order_matters(i, j); i = i->next)
            ;
        append(i ? &go : &stay, j);
    }
    while ((j = take_first(&stay)))
        append(todo, j);
    while ((j = take_first(&go)))
        append(todo, j);
}

// ---- the thread

// True: it has ended. A peer that does not exist is found out by the first request, as after
// urma_import_jetty.
static bool run(struct ur_notifier *n, struct job *j)
{
    const urma_jetty_id_t *id = &j->target->t.id;
    bool late = dock_now_ns() >= j->end;

    if (dock_reach(ur_dev(n->n.urma_ctx), id->eid.raw, id->id, late ? 0 : SLICE_MS) == -EAGAIN) {
        if (dock_now_ns() < j->end)
            return false;
        j->what.status =
            dock_refuse(URMA_ETIMEOUT, "%s: the process of target %u has not answered in %u ms",
                        j->jetty ? "urma_bind_jetty_async" : "urma_import_jetty_async", id->id, j->ms);
    } else if (j->jetty) {
        j->what.status = urma_bind_jetty(j->jetty, &j->target->t);
    }
    return true;
}

// The count of what is done. Under the lock no thread may be cancelled, as it may in libc's calls.
static bool count_one(const struct ur_notifier *n)
{
    uint64_t one = 1;

    return dock_rawcall(SYS_write, n->n.fd, (long)&one, sizeof one, 0, 0, 0) > 0;
}

static bool uncount_one(const struct ur_notifier *n)
{
    uint64_t one;

    return dock_rawcall(SYS_read, n->n.fd, (long)&one, sizeof one, 0, 0, 0) == sizeof one;
}

static void tell(struct ur_notifier *n, struct job *j)
{
    append(&n->done, j);
    if (!count_one(n))
        dock_error("a notice was not told: the descriptor of its notifier is full or gone");
}

static void *work(void *arg)
{
    struct ur_notifier *n = arg;

    dock_lock(&lock);
    while (!n->leaving) {
        n->running = holders ? NULL : take_first(&n->todo);
        if (!n->running) {
            pthread_cond_wait(&change, &lock);
            continue;
        }
        dock_unlock(&lock);
        bool ended = run(n, n->running);
        dock_lock(&lock);
        if (ended)
            tell(n, n->running);
        else
            to_the_end(&n->todo, n->running);
        n->running = NULL;
        pthread_cond_broadcast(&change);
    }
    dock_unlock(&lock);
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
    empty(&n->todo);
    empty(&n->done);
    n->n.fd = dock_fd_own(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK));
    err = n->n.fd < 0 ? dock_refuse(-errno, "urma_create_notifier: no descriptor") : start(n);
    if (err)
        goto no_thread;
    dock_lock(&lock);
    n->next = notifiers;
    notifiers = n;
    dock_unlock(&lock);
    ur_use(&ctx->ref);
    return &n->n;

no_thread:
    if (n->n.fd >= 0)
        dock_close(n->n.fd);
    free(n);
    return ur_none(err);
}

urma_status_t urma_delete_notifier(urma_notifier_t *notifier)
{
    struct ur_notifier *n = (struct ur_notifier *)notifier;

    if (!notifier)
        return dock_refuse(URMA_EINVAL, "urma_delete_notifier: no notifier given");
    dock_lock(&lock);
    n->leaving = true;
    pthread_cond_broadcast(&change);
    dock_unlock(&lock);
    dock_uncancelled_begin();
    pthread_join(n->worker, NULL);
    dock_uncancelled_end();
    dock_lock(&lock);
    for (struct ur_notifier **at = &notifiers; *at; at = &(*at)->next)
        if (*at == n) {
            *at = n->next;
            break;
        }
    dock_unlock(&lock);
    forget_all(&n->todo);
    forget_all(&n->done);
    dock_close(notifier->fd);
    ur_drop(&notifier->urma_ctx->ref);
    free(n);
    return URMA_SUCCESS;
}

// ---- jobs

static void give(struct ur_notifier *n, struct job *j, int timeout)
{
    j->ms = timeout > 0 ? (uint32_t)timeout : LONGEST_MS;
    j->end = dock_now_ns() + j->ms * 1000000ull;
    dock_lock(&lock);
    append(&n->todo, j);
    pthread_cond_broadcast(&change);
    dock_unlock(&lock);
}

static bool concerns(const struct job *j, const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    return j && ((target && &j->target->t == target) || (jetty && j->jetty == jetty));
}

// How many were there.
static unsigned drop(struct list *l, const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    unsigned dropped = 0;
    struct list stay;
    struct job *j;

    empty(&stay);
    while ((j = take_first(l)))
        if (concerns(j, target, jetty)) {
            free(j);
            dropped++;
        } else {
            append(&stay, j);
        }
    while ((j = take_first(&stay)))
        append(l, j);
    return dropped;
}

void ur_hold_jobs(const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    struct ur_notifier *n;

    dock_lock(&lock);
    holders++;
again:
    for (n = notifiers; n; n = n->next)
        if (concerns(n->running, target, jetty)) {
            pthread_cond_wait(&change, &lock);
            goto again; // notifiers may have come and gone
        }
    dock_unlock(&lock);
}

static void drop_jobs(const urma_target_jetty_t *target, const urma_jetty_t *jetty)
{
    for (struct ur_notifier *n = notifiers; n; n = n->next) {
        drop(&n->todo, target, jetty);
        for (unsigned told = drop(&n->done, target, jetty); told && uncount_one(n); told--)
            ;
    }
}

void ur_let_jobs_go(const urma_target_jetty_t *target, const urma_jetty_t *jetty, bool dropped)
{
    dock_lock(&lock);
    if (dropped)
        drop_jobs(target, jetty);
    holders--;
    pthread_cond_broadcast(&change);
    dock_unlock(&lock);
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

    dock_lock(&lock);
    while (got < most && n->done.first && uncount_one(n)) {
        struct job *j = take_first(&n->done);
        out[got++] = j->what;
        free(j);
    }
    dock_unlock(&lock);
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
