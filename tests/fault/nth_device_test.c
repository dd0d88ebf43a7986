// SPDX-License-Identifier: MIT
// The n-th allocation or system call of a device's whole life fails, for every n until nothing fails any
// more: two devices are opened, every kind of object is made, bytes move between them, all is destroyed. Each
// failure is an error code with a reason, or a status, or is done without; descriptors, mappings, heap blocks
// and files are as before. One failure: nth_device_test N
// timeout: 240
#ifdef DOCK_SANITIZED
int main(void)
{
    return 77; // sanitizers need these functions for themselves
}
#else
#include <dirent.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/identity.h"
#include "fault/nth_calls.h"
#include "lib/fork.h"
#include "lib/pair.h"

struct side {
    struct dock_dev *dev;
    uint32_t pd;
    struct dock_chan *chan;
    struct dock_events *events;
    struct dock_cq *scq, *rcq;
    struct dock_rq *srq;
    struct dock_qp *qp;
    char *mem, *plain;
    struct dock_mr *mr, *mr_plain, *mw;
};

struct life {
    struct side s[2], *now;
    const char *step;
    uint32_t status; // of the completion that failed
};

#define BYTES 100000u
#define RIGHTS                                                                                               \
    (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |                          \
     DOCK_ACCESS_REMOTE_ATOMIC | DOCK_ACCESS_MW_BIND)

static int up_dev(struct life *l)
{
    return dock_dev_open(NULL, &l->now->dev);
}

static int down_dev(struct life *l)
{
    return dock_dev_close(l->now->dev);
}

static int up_pd(struct life *l)
{
    return dock_pd_create(l->now->dev, &l->now->pd);
}

static int down_pd(struct life *l)
{
    return dock_pd_destroy(l->now->dev, l->now->pd);
}

static int up_chan(struct life *l)
{
    return dock_chan_create(l->now->dev, &l->now->chan);
}

static int down_chan(struct life *l)
{
    return dock_chan_destroy(l->now->chan);
}

static int up_events(struct life *l)
{
    return dock_events_open(l->now->dev, &l->now->events);
}

static int down_events(struct life *l)
{
    dock_events_close(l->now->events);
    return 0;
}

static int up_cq(struct life *l)
{
    struct dock_cq_attr a = {.depth = 64};

    return dock_cq_create(l->now->dev, &a, &l->now->scq);
}

static int down_cq(struct life *l)
{
    return dock_cq_destroy(l->now->scq);
}

static int up_rcq(struct life *l)
{
    struct dock_cq_attr a = {.depth = 64, .chan = l->now->chan};

    return dock_cq_create(l->now->dev, &a, &l->now->rcq);
}

static int down_rcq(struct life *l)
{
    return dock_cq_destroy(l->now->rcq);
}

static int up_srq(struct life *l)
{
    struct dock_srq_attr a = {.pd = l->now->pd, .max_wr = 8, .max_sge = 2};

    return dock_srq_create(l->now->dev, &a, &l->now->srq);
}

static int down_srq(struct life *l)
{
    return dock_srq_destroy(l->now->srq);
}

static int up_qp(struct life *l)
{
    struct side *s = l->now;
    struct dock_qp_attr a = {.service = DOCK_RC,
                             .pd = s->pd,
                             .send_cq = s->scq,
                             .recv_cq = s->rcq,
                             .srq = s == &l->s[1] ? s->srq : NULL,
                             .max_send_wr = 8,
                             .max_recv_wr = 8,
                             .max_send_sge = 2,
                             .max_recv_sge = 2,
                             .max_inline = 64};

    return dock_qp_create(s->dev, &a, &s->qp);
}

static int down_qp(struct life *l)
{
    return dock_qp_destroy(l->now->qp);
}

static int up_mem(struct life *l)
{
    return dock_mem_alloc(l->now->dev, BYTES, (void **)&l->now->mem);
}

static int down_mem(struct life *l)
{
    dock_mem_free(l->now->dev, l->now->mem, BYTES);
    return 0;
}

static int up_mr(struct life *l)
{
    struct side *s = l->now;

    return dock_mr_register(s->dev, s->pd, (uintptr_t)s->mem, BYTES, (uintptr_t)s->mem, RIGHTS, &s->mr);
}

static int down_mr(struct life *l)
{
    return dock_mr_deregister(l->now->mr);
}

static int up_plain(struct life *l)
{
    static char memory[2][BYTES];
    struct side *s = l->now;

    s->plain = memory[s - l->s];
    return dock_mr_register(s->dev, s->pd, (uintptr_t)s->plain, BYTES, (uintptr_t)s->plain, RIGHTS,
                            &s->mr_plain);
}

static int down_plain(struct life *l)
{
    return dock_mr_deregister(l->now->mr_plain);
}

static int up_mw(struct life *l)
{
    return dock_mw_create(l->now->dev, l->now->pd, DOCK_SEG_MW2, &l->now->mw);
}

static int down_mw(struct life *l)
{
    return dock_mw_destroy(l->now->mw);
}

static int up_connect(struct life *l)
{
    struct side *s = l->now;
    struct end e = {.qp = s->qp};
    struct dock_qp_mod m = {.timeout = 10,
                            .retry = 7,
                            .rnr_retry = 7,
                            .rnr_timer = 1,
                            .rd_atomic = 16,
                            .dest_rd_atomic = 16,
                            .access = RIGHTS & ~(DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_MW_BIND)};

    end_connect(&e, dock_qp_number(l->s[s == l->s].qp),
                &m); // aborts on failure: it needs nothing that can fail
    return 0;
}

static int down_connect(struct life *l)
{
    (void)l;
    return 0;
}

// One request to its end, and if it is a SEND the receive as well.
static int request(struct life *l, uint8_t op, char *here, struct dock_mr *local, char *there,
                   struct dock_mr *remote)
{
    struct side *a = &l->s[0], *b = &l->s[1];
    struct end e = {.qp = a->qp, .mem = here, .mr = local};
    struct dock_sge sge, to = {(uintptr_t)there, BYTES, remote->lkey};
    struct dock_wc wc;
    int err = 0;

    if (op == DOCK_OP_SEND) {
        dock_recv_begin(b->srq);
        err = dock_recv_put(b->srq, 7, &to, 1);
        dock_recv_end(b->srq);
    }
    struct dock_wr wr =
        wr_onesided(op, &e, &sge, 0, op == DOCK_OP_FADD ? 8 : BYTES, remote, (uintptr_t)there);
    memset(here, op + 1, BYTES);
    if (!err)
        err = end_post(&e, &wr);
    if (err)
        return err;
    if (!end_wait(a->scq, &wc, 10000 * test_slow()))
        return -ETIMEDOUT;
    l->status = wc.status;
    if (wc.status)
        return 1;
    if ((op == DOCK_OP_WRITE || op == DOCK_OP_SEND) && memcmp(here, there, BYTES))
        return -EBADMSG;
    if (op == DOCK_OP_SEND && (!end_wait(b->rcq, &wc, 10000) || wc.status))
        return -ETIMEDOUT;
    return 0;
}

static int up_move(struct life *l)
{
    static const uint8_t ops[] = {DOCK_OP_WRITE, DOCK_OP_READ, DOCK_OP_FADD, DOCK_OP_SEND};
    struct side *a = &l->s[0], *b = &l->s[1];
    int err = 0;

    if (l->now == a)
        return 0;
    dock_cq_arm(b->rcq, false, false);
    for (unsigned i = 0; i < sizeof ops && !err; i++)
        err = request(l, ops[i], a->mem, a->mr, b->mem, b->mr);
    for (unsigned i = 0; i < sizeof ops && !err; i++)
        err = request(l, ops[i], a->plain, a->mr_plain, b->plain, b->mr_plain);
    return err;
}

struct step {
    const char *name;
    int (*up)(struct life *), (*down)(struct life *);
};

static const struct step steps[] = {
    {"device", up_dev, down_dev},
    {"domain", up_pd, down_pd},
    {"channel", up_chan, down_chan},
    {"events", up_events, down_events},
    {"CQ", up_cq, down_cq},
    {"CQ with channel", up_rcq, down_rcq},
    {"shared receive queue", up_srq, down_srq},
    {"memory", up_mem, down_mem},
    {"region", up_mr, down_mr},
    {"plain region", up_plain, down_plain},
    {"window", up_mw, down_mw},
    {"queue pair", up_qp, down_qp},
    {"connect", up_connect, down_connect},
    {"move", up_move, down_connect},
};

// Up as far as it goes, and down again. What `up` said; a failing `down` is -EDOM.
static int live(struct life *l)
{
    int n = 0, all = 2 * (int)(sizeof steps / sizeof *steps), ret = 0;

    for (; n < all && !ret; n += !ret) {
        l->now = &l->s[n & 1];
        l->step = steps[n / 2].name;
        ret = steps[n / 2].up(l);
    }
    while (n-- > 0) {
        l->now = &l->s[n & 1];
        if (steps[n / 2].down(l)) {
            l->step = steps[n / 2].name;
            ret = -EDOM;
        }
    }
    return ret;
}

// ---- what is left

struct wealth {
    long fds, maps, blocks, files;
};

static long entries(const char *path)
{
    DIR *d = opendir(path);
    long n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static struct wealth count(void)
{
    return (struct wealth){entries("/proc/self/fd"), live_maps, live_blocks, entries(getenv("DRYDOCK_DIR"))};
}

static int wrong(long n, const struct life *l, const char *what, long expected, long got)
{
    const char *call = atomic_load(&failed_call);

    printf("call %ld (%s) failed, step %s: %s: expected %ld, got %ld (%s)\n"
           "again: scripts/run-one build/dev/tests/fault/nth_device_test %ld\n",
           n, call ? call : "none", l->step, what, expected, got, dock_log_last(), n);
    return 1;
}

// What a failing call may become: itself, one of what our headers name, or the status of a request.
static bool documented(const struct life *l, int ret)
{
    if (ret == 1)
        return copy_failed() && (l->status == DOCK_ST_REM_OP || l->status == DOCK_ST_LOC_PROT);
    return failed_becomes(-ret);
}

static int one(long n, struct wealth *before, bool *failed, bool *error)
{
    struct life l = {0};
    int bad = 0;

    dock_debug("%s", "");
    atomic_store(&failed_call, NULL);
    arm(n);
    int ret = live(&l);
    arm(0);
    struct wealth after = count();
    *failed = atomic_load(&failed_call) != NULL;
    *error = ret != 0;
    if (ret && (!*failed || !documented(&l, ret)))
        bad = wrong(n, &l, ret == 1 ? "status" : "result", 0, ret == 1 ? (long)l.status : ret);
    if (ret && !dock_log_last()[0])
        bad = wrong(n, &l, "characters of a reason", 1, 0);
    if (after.fds != before->fds)
        bad = wrong(n, &l, "descriptors", before->fds, after.fds);
    if (after.maps != before->maps)
        bad = wrong(n, &l, "mappings", before->maps, after.maps);
    if (after.blocks != before->blocks)
        bad = wrong(n, &l, "heap blocks", before->blocks, after.blocks);
    if (after.files != before->files)
        bad = wrong(n, &l, "files in the runtime directory", before->files, after.files);
    *before = after; // a leak is told once
    return bad;
}

int main(int argc, char **argv)
{
    struct life l = {0};
    bool failed = true, error;
    int bad = 0, errors = 0, clean = 0, quiet = open("/dev/null", O_WRONLY);
    uint64_t begin = dock_now_ns();
    long n = 0;

    setvbuf(stdout, NULL, _IONBF, 0); // no heap for words
    memcpy(test_eid, dock_identity()->gid[0].raw, 16);
    setenv("DRYDOCK_STOPPED_MS", "300", 0);
    if (!getenv("DRYDOCK_DIR"))
        setenv("DRYDOCK_DIR", "/tmp/drydock-nth", 1);
    for (int i = 0; i < 2; i++) // what a process does once happens here
        if (live(&l))
            return wrong(0, &l, "result without a failure", 0, 1);
    if (argc < 2)
        dup2(quiet, STDERR_FILENO);
    struct wealth before = count();
    if (argc > 1)
        return one(atol(argv[1]), &before, &failed, &error);
    // The engine threads call when they do: the end is where nothing has failed several times in a row.
    while (clean < 5) {
        bad |= one(++n, &before, &failed, &error);
        errors += error;
        clean = failed ? 0 : clean + 1;
    }
    printf("%ld calls failed in turn, %d of them ended in an error, the others were done without; %.0f s\n",
           n - 5, errors, (double)(dock_now_ns() - begin) / 1e9);
    return bad || errors < 20;
}
#endif
