// SPDX-License-Identifier: MIT
// Other devices of the host: reached at first use, kept while anybody needs them, watched for their death.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "arena/home.h"
#include "arena/idfile.h"
#include "base/clock.h"
#include "device/internal.h"
#include "fabric/host/host.h"

#define ASKED_AT_ONCE 8u // peers at a look, whether they run another program: system calls for each

enum reach { COMING, HERE, LOST };

struct dock_peer_slot {
    struct dock_peer peer;
    struct dock_view view;
    enum reach reach;
    int sock;
    uint64_t since_ns;
    uint32_t tag; // in the epoll set
    struct dock_peer_slot *next;
};

static struct dock_peer_slot *find(struct dock_dev *dev, dock_who who)
{
    for (struct dock_peer_slot *s = dev->peers; s; s = s->next)
        if (s->peer.who == who && s->reach != LOST)
            return s;
    return NULL;
}

bool dock_peers_know(struct dock_dev *dev, dock_who who)
{
    dock_lock(&dev->peer_lock);
    bool known = find(dev, who) != NULL;
    dock_unlock(&dev->peer_lock);
    return known;
}

bool dock_peers_lost(struct dock_dev *dev)
{
    bool lost = false;

    dock_lock(&dev->peer_lock);
    for (const struct dock_peer_slot *s = dev->peers; s && !lost; s = s->next)
        lost = s->reach == LOST;
    dock_unlock(&dev->peer_lock);
    return lost;
}

static int watch(struct dock_dev *dev, struct dock_peer_slot *s, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = s->tag};

    return epoll_ctl(dev->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static void unlink_slot(struct dock_dev *dev, struct dock_peer_slot *s)
{
    struct dock_peer_slot **at = &dev->peers;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

static void free_slot(struct dock_peer_slot *s)
{
    if (s->sock >= 0)
        close(s->sock);
    if (s->reach != COMING && !s->peer.self) {
        dock_view_close(&s->view);
        close(s->peer.bell_fd);
        if (s->peer.pidfd >= 0)
            close(s->peer.pidfd);
    }
    free(s);
}

static int begin(struct dock_dev *dev, dock_who who)
{
    struct dock_peer_slot *s = calloc(1, sizeof *s);
    int err;

    if (!s)
        return dock_no_memory("a peer");
    s->sock = -1;
    s->peer.who = who;
    s->since_ns = dock_now_ns();
    s->tag = ++dev->peer_tag;
    err = dock_gift_begin(&dev->dir, who, &s->sock);
    if (!err)
        err = watch(dev, s, s->sock);
    if (err) {
        free_slot(s);
        return -EHOSTUNREACH;
    }
    s->next = dev->peers;
    dev->peers = s;
    return -EAGAIN;
}

static bool port_stands(struct dock_peer_slot *s)
{
    struct dock_port *port = dock_view_at(&s->view, 0, sizeof *port);

    if (!port || dock_acquire64(&port->magic) != DOCK_PORT_MAGIC || port->version != DOCK_PORT_VERSION ||
        port->who != s->peer.who)
        return false;
    s->peer.port = port;
    if (port->full_fences)
        dock_fence_symmetric();
    return true;
}

// Hear of its death by its pidfd; where that cannot be, dock_peers_check asks for its life.
static void watch_life(struct dock_dev *dev, struct dock_peer_slot *s)
{
    if (s->peer.pidfd < 0 || watch(dev, s, s->peer.pidfd) == 0)
        return;
    close(s->peer.pidfd);
    s->peer.pidfd = -1;
}

static bool lost_its_lock(struct dock_dev *dev, const struct dock_peer *peer)
{
    return dock_idfile_held(dev->ids_table.file, dock_who_slot(peer->who)) <= 0;
}

static bool runs_another_image(const struct dock_peer *peer)
{
    return peer->home && peer->pid && dock_home_left(peer->pid, peer->home);
}

// Where its plain memory is: behind its number, as long as that is its home. false: it has left it meanwhile.
static bool find_home(struct dock_dev *dev, struct dock_peer *peer)
{
    struct dock_owner owner = {0};

    dock_idtable_lookup(&dev->ids_table, peer->who, &owner);
    peer->home = owner.home;
    if (!runs_another_image(peer))
        return true;
    peer->home = 0; // a word that changed by accident leads nowhere
    return dock_idtable_life(&dev->ids_table, peer->who) != DOCK_LIFE_DEAD;
}

// The gift is there: from now on the peer need not run.
static void arrive(struct dock_dev *dev, struct dock_peer_slot *s)
{
    struct dock_gift gift;
    int err = dock_gift_take(s->sock, s->peer.who, &gift);

    if (err == -EAGAIN)
        return;
    s->sock = -1; // taken or not, it is closed
    if (err)
        goto gone;
    err = dock_view_open(&s->view, gift.arena_fd, gift.shift);
    gift.arena_fd = -1; // the view's, opened or not
    if (err) {
        dock_gift_drop(&gift);
        goto gone;
    }
    s->peer.view = &s->view;
    s->peer.bell_fd = gift.bell_fd;
    s->peer.pidfd = gift.pidfd;
    s->peer.pid =
        gift.seen_pid; // 0 in a pid namespace that does not see it: plain memory is then out of reach
    s->reach = HERE;
    if (!find_home(dev, &s->peer)) {
        dock_info("device %#x has gone with an exec", s->peer.who);
    } else if (port_stands(s)) {
        watch_life(dev, s);
        return;
    } else {
        dock_error("device %#x handed out an arena that is not one of ours", s->peer.who);
    }
gone:
    unlink_slot(dev, s);
    free_slot(s);
}

// Whoever drives a queue that the dead device carried looks at nothing but memory: its state tells.
static void end_relays(struct dock_peer *peer)
{
    for (unsigned slot = 0; slot < DOCK_SLOTS; slot++)
        for (uint32_t i = 0; i < 1u << DOCK_BLOCK_SHIFT; i++) {
            struct dock_qrec *rec = dock_host_find(peer, slot << DOCK_BLOCK_SHIFT | i);
            if (!rec)
                break;
            if (rec->kind_service >> 8 == DOCK_QUEUE_RELAY && dock_peek32(&rec->state) == DOCK_RTS)
                dock_publish32(&rec->state, DOCK_ERR); // pairs with the look of drydock_poll_until
        }
}

static void bury(struct dock_dev *dev, struct dock_peer_slot *s)
{
    dock_who who = s->peer.who;

    dock_info("device %#x (pid %d) is dead", who, (int)s->peer.pid);
    dock_set32(&s->peer.dead, 1); // a late reader fails at its next request
    end_relays(&s->peer);
    if (s->peer.pidfd >= 0)
        epoll_ctl(dev->epoll_fd, EPOLL_CTL_DEL, s->peer.pidfd, NULL);
    s->reach = LOST;
    if (s->peer.refs == 0) {
        unlink_slot(dev, s);
        free_slot(s);
    }
}

void dock_peers_ready(struct dock_dev *dev, uint32_t tag)
{
    dock_who dead = 0;
    struct dock_peer_slot *s;

    dock_lock(&dev->peer_lock);
    for (s = dev->peers; s && s->tag != tag; s = s->next)
        ;
    if (s && s->reach == COMING) {
        arrive(dev, s);
    } else if (s && s->reach == HERE && dock_pidfd_dead(s->peer.pidfd)) {
        dead = s->peer.who;
        bury(dev, s);
    }
    dock_unlock(&dev->peer_lock);
    if (dead)
        dock_repair(dev, dead);
}

// What no pidfd tells: where there is none, an eviction; and an exec, for which each is looked at in turn: by
// its lock first, since its memory may be long in coming.
static bool died_unheard(struct dock_dev *dev, const struct dock_peer *peer, bool turn)
{
    return dock_idtable_evicted(&dev->ids_table, peer->who) ||
           ((peer->pidfd < 0 || (turn && lost_its_lock(dev, peer) && runs_another_image(peer))) &&
            dock_idtable_life(&dev->ids_table, peer->who) == DOCK_LIFE_DEAD);
}

// Now and then.
void dock_peers_check(struct dock_dev *dev)
{
    unsigned n = 0, i = 0;
    dock_who dead = 0;

    dock_lock(&dev->peer_lock);
    for (const struct dock_peer_slot *s = dev->peers; s; s = s->next)
        n++;
    for (struct dock_peer_slot *s = dev->peers, *next; s; s = next, i++) {
        next = s->next;
        bool turn = (i + n - dev->peer_turn % n) % n < ASKED_AT_ONCE;
        bool stale = s->reach == COMING && dock_now_ns() - s->since_ns > 5000000000u;
        if (stale) {
            unlink_slot(dev, s);
            free_slot(s);
        } else if (s->reach == HERE && !s->peer.self && !dead && died_unheard(dev, &s->peer, turn)) {
            dead = s->peer.who;
            bury(dev, s);
        }
    }
    dev->peer_turn += ASKED_AT_ONCE;
    dock_unlock(&dev->peer_lock);
    if (dead)
        dock_repair(dev, dead);
}

int dock_up_peer(struct dock_dev *dev, dock_who who, struct dock_peer **out)
{
    int err = 0;

    if (who == 0)
        return -EHOSTUNREACH;
    dock_lock(&dev->peer_lock);
    struct dock_peer_slot *s = find(dev, who);
    if (!s)
        err = begin(dev, who);
    else if (s->reach == COMING)
        err = -EAGAIN;
    else
        s->peer.refs++;
    if (!err)
        *out = &s->peer;
    dock_unlock(&dev->peer_lock);
    return err;
}

void dock_up_peer_put(struct dock_dev *dev, struct dock_peer *peer)
{
    dock_lock(&dev->peer_lock);
    for (struct dock_peer_slot *s = dev->peers; s; s = s->next) {
        if (&s->peer != peer)
            continue;
        if (--peer->refs == 0 && s->reach == LOST) {
            unlink_slot(dev, s);
            free_slot(s);
        }
        break;
    }
    dock_unlock(&dev->peer_lock);
}

int dock_peers_wait(struct dock_dev *dev, dock_who who, unsigned ms)
{
    uint64_t until = dock_now_ns() + ms * 1000000ull;
    struct dock_peer *peer;
    int err;

    while ((err = dock_up_peer(dev, who, &peer)) == -EAGAIN && dock_now_ns() < until)
        dock_engine_nap(dev);
    if (!err)
        dock_up_peer_put(dev, peer);
    return err;
}

int dock_peers_open(struct dock_dev *dev)
{
    struct dock_peer_slot *s = calloc(1, sizeof *s);

    if (!s)
        return dock_no_memory("a peer");
    s->peer = (struct dock_peer){.who = dev->waiter.me,
                                 .self = true,
                                 .pid = getpid(),
                                 .view = &dev->arena.view,
                                 .port = dev->port,
                                 .bell_fd = dev->bell_fd,
                                 .pidfd = -1,
                                 .refs = 1};
    s->sock = -1;
    s->reach = HERE;
    dev->peers = dev->self = s;
    return 0;
}

struct dock_peer *dock_peer_self(struct dock_dev *dev)
{
    return &dev->self->peer;
}

void dock_peers_close(struct dock_dev *dev)
{
    while (dev->peers) {
        struct dock_peer_slot *s = dev->peers;
        dev->peers = s->next;
        free_slot(s);
    }
}
