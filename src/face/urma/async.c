// SPDX-License-Identifier: MIT
// Import and bind whose outcome comes by notice. Nothing here has to travel: the work is done when the call
// returns, and the notice says how it ended. A program that waits for it sees what it would see on a device
// where it takes long.
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "face/urma/urma_face.h"

struct notice {
    urma_notify_t what;
    struct notice *next;
};

struct ur_notifier {
    urma_notifier_t n;
    pthread_mutex_t lock;
    struct notice *head, **tail; // the descriptor counts them
};

urma_notifier_t *urma_create_notifier(urma_context_t *ctx)
{
    struct ur_notifier *n;

    if (!ctx)
        return ur_none(dock_refuse(-EINVAL, "urma_create_notifier: no context given"));
    n = calloc(1, sizeof *n);
    if (!n)
        return ur_none(dock_no_memory("a notifier"));
    n->n.urma_ctx = ctx;
    n->n.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    if (n->n.fd < 0) {
        free(n);
        return ur_none(dock_refuse(-errno, "urma_create_notifier: no descriptor"));
    }
    n->tail = &n->head;
    pthread_mutex_init(&n->lock, NULL);
    ur_use(&ctx->ref);
    return &n->n;
}

urma_status_t urma_delete_notifier(urma_notifier_t *notifier)
{
    struct ur_notifier *n = (struct ur_notifier *)notifier;

    if (!notifier)
        return dock_refuse(URMA_EINVAL, "urma_delete_notifier: no notifier given");
    while (n->head) {
        struct notice *gone = n->head;
        n->head = gone->next;
        free(gone);
    }
    close(notifier->fd);
    pthread_mutex_destroy(&n->lock);
    ur_drop(&notifier->urma_ctx->ref);
    free(n);
    return URMA_SUCCESS;
}

static void tell(struct ur_notifier *n, struct notice *m)
{
    uint64_t one = 1;
    ssize_t done;

    pthread_mutex_lock(&n->lock);
    *n->tail = m;
    n->tail = &m->next;
    pthread_mutex_unlock(&n->lock);
    done = write(n->n.fd, &one, sizeof one);
    (void)done;
}

urma_target_jetty_t *urma_import_jetty_async(urma_notifier_t *notifier, const urma_rjetty_t *rjetty,
                                             const urma_token_t *token_value, uint64_t user_ctx, int timeout)
{
    urma_target_jetty_t *t;
    urma_rjetty_t r;
    urma_token_t token;
    struct notice *m;

    (void)timeout; // it does not take any
    if (!notifier || !rjetty || (!token_value && rjetty->flag.bs.token_policy != URMA_TOKEN_NONE))
        return ur_none(
            dock_refuse(-EINVAL, "urma_import_jetty_async: no notifier, no jetty, or no token for one"));
    m = calloc(1, sizeof *m);
    if (!m)
        return ur_none(dock_no_memory("a notice"));
    r = *rjetty;
    token = token_value ? *token_value : (urma_token_t){0};
    t = urma_import_jetty(notifier->urma_ctx, &r, &token);
    if (!t) {
        free(m);
        return NULL;
    }
    m->what = (urma_notify_t){.type = URMA_IMPORT_JETTY_NOTIFY, .user_ctx = user_ctx, .tjetty = t};
    tell((struct ur_notifier *)notifier, m);
    return t;
}

urma_status_t urma_unimport_jetty_async(urma_target_jetty_t *tjetty)
{
    return urma_unimport_jetty(tjetty);
}

urma_status_t urma_bind_jetty_async(urma_notifier_t *notifier, urma_jetty_t *jetty,
                                    urma_target_jetty_t *tjetty, uint64_t user_ctx, int timeout)
{
    urma_status_t status;
    struct notice *m;

    (void)timeout;
    if (!notifier || !jetty || !tjetty)
        return dock_refuse(URMA_EINVAL, "urma_bind_jetty_async: no notifier, no jetty, or no target");
    m = calloc(1, sizeof *m);
    if (!m)
        return ur_status(dock_no_memory("a notice"));
    status = urma_bind_jetty(jetty, tjetty);
    if (status) {
        free(m);
        return status;
    }
    m->what = (urma_notify_t){.type = URMA_BIND_JETTY_NOTIFY, .user_ctx = user_ctx, .jetty = jetty};
    tell((struct ur_notifier *)notifier, m);
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

    pthread_mutex_lock(&n->lock);
    while (got < most && n->head && read(n->n.fd, &one, sizeof one) == sizeof one) {
        struct notice *m = n->head;
        n->head = m->next;
        if (!n->head)
            n->tail = &n->head;
        out[got++] = m->what;
        free(m);
    }
    pthread_mutex_unlock(&n->lock);
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
