// SPDX-License-Identifier: MIT
#include "lib/duo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arena/xcopy.h"
#include "base/clock.h"
#include "base/seed.h"
#include "device/state.h"

const char *const place_name[PLACES] = {"self, arena", "self, plain", "two processes, arena",
                                        "two processes, plain"};

bool place_reachable(enum place p)
{
    return !place_plain(p) || dock_xcopy_works();
}

bool place_possible(enum place p)
{
    bool processes = p == HOST_ARENA || p == HOST_PLAIN;

    return place_reachable(p) && !(processes && getenv("DRYDOCK_EMULATED"));
}

struct request {
    far_fn fn; // the far process is a fork: functions have the same address there
    size_t n;
    char io[DUO_IO];
};

static void give_up(const char *what)
{
    fprintf(stderr, "duo: %s: %s\n", what, strerror(errno));
    abort();
}

static void transfer(int sock, void *p, size_t n, bool out)
{
    for (char *at = p; n;) {
        ssize_t k = out ? send(sock, at, n, MSG_NOSIGNAL) : recv(sock, at, n, 0);
        if (k == 0 && !out)
            _exit(0); // the near process is done, or dead
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            give_up("the other process went away");
        at += k;
        n -= (size_t)k;
    }
}

static void side_open(struct side *s, struct dock_dev *dev, const struct end_opts *o)
{
    end_open(&s->e, dev, o);
    s->extra = NULL;
    if (dock_events_open(dev, &s->events))
        give_up("dock_events_open");
    fcntl(dock_events_fd(s->events), F_SETFL, O_NONBLOCK);
    dock_qp_set_events(s->e.qp, s->events);
    dock_cq_set_events(s->e.scq, s->events);
    dock_cq_set_events(s->e.rcq, s->events);
}

static void side_close(struct side *s)
{
    if (s->e.qp)
        dock_qp_destroy(s->e.qp);
    s->e.qp = NULL;
    if (s->extra)
        dock_mr_deregister(s->extra);
    end_close(&s->e);
    dock_events_close(s->events);
}

struct intro {
    struct dock_mr mr;
    uint32_t qpn;
    uintptr_t mem;
};

static void introduce(struct side *s, struct intro *i)
{
    memcpy(&i->mr, s->e.mr, sizeof i->mr);
    i->qpn = dock_qp_number(s->e.qp);
    i->mem = (uintptr_t)s->e.mem;
}

static struct dock_dev *device(const struct duo_opts *o)
{
    struct dock_config cfg = {.start_index = o->start_index, .fabric = o->fabric};
    struct dock_dev *dev;

    if (dock_dev_open(&cfg, &dev))
        give_up("dock_dev_open");
    return dev;
}

static void far_process(int sock, const struct duo_opts *o, const struct end_opts *opts)
{
    struct dock_dev *dev = device(o);
    struct side s;
    struct intro mine, theirs;
    struct request r;

    side_open(&s, dev, opts);
    introduce(&s, &mine);
    transfer(sock, &mine, sizeof mine, true);
    transfer(sock, &theirs, sizeof theirs, false);
    if (!o->unconnected)
        end_connect(&s.e, theirs.qpn, o->far_knobs);
    transfer(sock, &mine, sizeof mine, true); // connected
    for (;;) {
        transfer(sock, &r, sizeof r, false);
        if (!r.fn)
            break;
        r.fn(&s, r.io);
        transfer(sock, &r, sizeof r, true);
    }
    side_close(&s);
    int err = dock_dev_close(dev);
    exit(err ? 1 : 0); // not _exit: LeakSanitizer looks here too
}

static void open_two(struct duo *d, const struct duo_opts *o, const struct end_opts *near,
                     const struct end_opts *far)
{
    struct intro mine, theirs;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        give_up("socketpair");
    fflush(NULL);
    d->pid = fork();
    if (d->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        far_process(pair[1], o, far);
    }
    close(pair[1]);
    d->sock = pair[0];
    d->dev = device(o);
    side_open(&d->near, d->dev, near);
    introduce(&d->near, &mine);
    transfer(d->sock, &theirs, sizeof theirs, false);
    transfer(d->sock, &mine, sizeof mine, true);
    d->mr = theirs.mr;
    d->qpn = theirs.qpn;
    d->mem = theirs.mem;
    if (!o->unconnected)
        end_connect(&d->near.e, d->qpn, o->near_knobs);
    transfer(d->sock, &theirs, sizeof theirs, false);
}

static void open_self(struct duo *d, const struct duo_opts *o, const struct end_opts *near,
                      const struct end_opts *far)
{
    struct intro i;

    d->dev = device(o);
    d->far = malloc(sizeof *d->far);
    if (!d->far)
        give_up("malloc");
    side_open(&d->near, d->dev, near);
    side_open(d->far, d->dev, far);
    introduce(d->far, &i);
    d->mr = i.mr;
    d->qpn = i.qpn;
    d->mem = i.mem;
    if (o->unconnected)
        return;
    end_connect(&d->near.e, d->qpn, o->near_knobs);
    end_connect(&d->far->e, dock_qp_number(d->near.e.qp), o->far_knobs);
}

void duo_open(struct duo *d, enum place place, const struct duo_opts *opts)
{
    struct duo_opts o = opts ? *opts : (struct duo_opts){0};
    struct end_opts near = o.near, far = o.far;

    memset(d, 0, sizeof *d);
    d->place = place;
    near.plain = far.plain = place_plain(place);
    if (place_plain(place))
        setenv("DRYDOCK_ADOPT", o.adopted ? "inner" : "off", 1);
    if (place == HOST_ARENA || place == HOST_PLAIN)
        open_two(d, &o, &near, &far);
    else
        open_self(d, &o, &near, &far);
}

void duo_close(struct duo *d)
{
    struct request bye = {.fn = NULL};
    int status = 0;

    if (d->far) {
        side_close(d->far);
        free(d->far);
    } else {
        transfer(d->sock, &bye, sizeof bye, true);
        waitpid(d->pid, &status, 0);
        close(d->sock);
        if (status) {
            fprintf(stderr, "duo: the far process ended with status %#x\n", status);
            abort();
        }
    }
    side_close(&d->near);
    if (dock_dev_close(d->dev))
        give_up("dock_dev_close");
}

struct io_again {
    uint32_t dest_qp;
    bool stop, knows; // stop: no further than RESET
    struct dock_qp_mod knobs;
};

static void side_to(struct side *s, enum dock_state state)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = state};

    errno = -dock_qp_modify(s->e.qp, &m);
    if (errno)
        give_up(dock_state_name(state));
}

static void side_again(struct side *s, void *io)
{
    struct io_again *a = io;
    struct dock_event ev;
    struct dock_wc wc;

    if (s->e.service >= DOCK_RM && dock_qp_state(s->e.qp) != DOCK_RESET)
        side_to(s, DOCK_ERR); // URMA's table knows no other way to RESET
    side_to(s, DOCK_RESET);
    while (end_poll(s->e.scq, &wc) || end_poll(s->e.rcq, &wc))
        ;
    while (dock_events_get(s->events, &ev) == 0)
        dock_event_ack(&ev);
    if (s->extra)
        dock_mr_deregister(s->extra);
    s->extra = NULL;
    if (!a->stop)
        end_connect(&s->e, a->dest_qp, a->knows ? &a->knobs : NULL);
}

static struct io_again again(uint32_t dest_qp, const struct dock_qp_mod *knobs)
{
    struct io_again a = {.dest_qp = dest_qp, .knows = knobs != NULL};

    if (knobs)
        a.knobs = *knobs;
    return a;
}

void duo_again(struct duo *d, const struct duo_opts *o)
{
    struct io_again stop = {.stop = true}, near = again(d->qpn, o->near_knobs),
                    far = again(dock_qp_number(d->near.e.qp), o->far_knobs);

    side_again(&d->near, &stop); // before the far end: it sends nothing to a queue that is anew
    duo_far(d, side_again, &far, sizeof far);
    side_again(&d->near, &near);
}

void duo_far(struct duo *d, far_fn fn, void *io, size_t n)
{
    struct request r = {.fn = fn, .n = n};

    if (d->far) {
        fn(d->far, io);
        return;
    }
    if (n > sizeof r.io)
        abort();
    if (n)
        memcpy(r.io, io, n);
    transfer(d->sock, &r, sizeof r, true);
    transfer(d->sock, &r, sizeof r, false);
    if (n)
        memcpy(io, r.io, n);
}

void side_recv(struct side *s, void *io)
{
    struct io_recv *r = io;
    struct dock_rq *rq = dock_qp_rq(s->e.qp);
    struct dock_sge sge = {
        .addr = (uintptr_t)s->e.mem + r->off, .len = r->len, .key = r->key ? r->key : s->e.mr->lkey};

    dock_recv_begin(rq);
    r->err = dock_recv_put(rq, r->id, &sge, 1);
    dock_recv_end(rq);
}

void side_wait(struct side *s, void *io)
{
    struct io_wc *w = io;

    w->got = end_wait(w->send ? s->e.scq : s->e.rcq, &w->wc, w->ms);
}

void side_state(struct side *s, void *io)
{
    ((struct io_look *)io)->state = dock_qp_state(s->e.qp);
}

void side_event(struct side *s, void *io)
{
    struct io_look *l = io;
    uint64_t until = dock_now_ns() + l->ms * 1000000ull;
    struct timespec nap = {.tv_nsec = 200000};
    struct dock_event ev;

    l->event = -1;
    do {
        if (dock_events_get(s->events, &ev) == 0) {
            l->event = (int)ev.kind;
            dock_event_ack(&ev);
            return;
        }
        nanosleep(&nap, NULL);
    } while (dock_now_ns() < until);
}

void bytes_fill(char *p, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(dock_mix(seed + i / 8) >> i % 8 * 8);
}

uint64_t bytes_sum(const char *p, size_t n)
{
    uint64_t h = n, word = 0;

    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = dock_mix(h ^ word);
    }
    for (; n; n--, p++)
        h = dock_mix(h ^ (uint8_t)*p);
    return h;
}

void side_fill(struct side *s, void *io)
{
    struct io_mem *m = io;

    bytes_fill(s->e.mem + m->off, m->len, m->seed);
}

void side_sum(struct side *s, void *io)
{
    struct io_mem *m = io;

    m->sum = bytes_sum(s->e.mem + m->off, m->len);
}

bool duo_far_reaches(struct duo *d, uint32_t state, unsigned ms)
{
    uint64_t until = dock_now_ns() + ms * 1000000ull;
    struct timespec nap = {.tv_nsec = 200000};
    struct io_look l;

    for (;;) {
        duo_far(d, side_state, &l, sizeof l);
        if (l.state == state)
            return true;
        if (dock_now_ns() > until)
            return false;
        nanosleep(&nap, NULL);
    }
}

unsigned slow_down(void)
{
    const char *text = getenv("DRYDOCK_SLOW");
    int n = text ? atoi(text) : 1;

    return n > 1 ? (unsigned)n : 1;
}

void side_bind(struct side *s, void *io)
{
    struct io_bind *b = io;
    struct dock_wc wc = {.status = 0xfff};

    if (!s->extra && dock_mw_create(s->e.dev, s->e.pd, b->kind, &s->extra))
        return;
    struct dock_wr wr = {.op = DOCK_OP_BIND,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = s->extra->tid << 8,
                         .remote = s->e.mr->lkey,
                         .raddr = (uintptr_t)s->e.mem + b->off,
                         .operand = b->len,
                         .compare = b->access,
                         .imm = b->variant};
    if (end_post(&s->e, &wr) || !end_wait(s->e.scq, &wc, 5000 * slow_down()))
        return;
    b->status = wc.status;
    b->key = s->extra->rkey;
    b->windows = dock_peek32(&s->e.mr->windows);
}

void side_unbind(struct side *s, void *io)
{
    struct io_bind *b = io;

    b->status = s->extra ? (uint32_t)dock_mw_destroy(s->extra) : 0;
    s->extra = NULL;
}
