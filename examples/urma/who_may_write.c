// SPDX-License-Identifier: MIT
// Who may write at once? "At once" has four meanings, and each has its own answer.
//
//   1. Software fills new entries of a send queue while the device consumes old ones: yes, that is what a
// queue is.   2. Many requests of one queue are unfinished: yes, up to its depth.   3. Many threads post to
// one jetty: yes, if it is locked (the default). The lock orders them; they take turns.   4. Many threads
// post without a lock: yes, each to a jetty of its own. lock_free takes the lock away, not the
//      conflict: two threads on one lock_free jetty would both see the same free slot and both write it.
//
//     drydock run who_may_write [DEVICE]        or, with an adapter:        who_may_write [DEVICE]
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ub/umdk/urma/urma_api.h>

enum { THREADS = 4, DEPTH = 64, WRITES = 2000, TOKEN = 7 };

// One way: a jetty that posts, and the one at its other end.
struct way {
    urma_jfc_t *jfc;
    urma_jfr_t *jfr[2];
    urma_jetty_t *jetty[2];
    urma_target_jetty_t *peer[2];
};

static urma_context_t *ctx;
static uint64_t source[THREADS], target[THREADS];
static urma_target_seg_t *source_seg, *target_seg, *target_there;

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "who_may_write: %s failed\n", what);
    exit(1);
}

// ---- set-up; examples/urma/write_read.c explains it line by line

static void open_device(const char *wanted)
{
    urma_device_t **list, *dev = NULL;
    urma_eid_info_t *eids;
    uint32_t count;
    int n;

    must(urma_init(NULL) == URMA_SUCCESS, "urma_init");
    list = urma_get_device_list(&n);
    for (int i = 0; list && i < n && !dev; i++)
        if (!wanted || !strcmp(wanted, list[i]->name))
            dev = list[i];
    urma_free_device_list(list);
    must(dev != NULL, "finding the device");
    eids = urma_get_eid_list(dev, &count);
    must(eids && count, "urma_get_eid_list");
    ctx = urma_create_context(dev, eids[0].eid_index);
    urma_free_eid_list(eids);
    must(ctx != NULL, "urma_create_context");
}

static urma_target_seg_t *share(void *p, size_t n)
{
    urma_seg_cfg_t cfg = {
        .va = (uintptr_t)p,
        .len = n,
        .token_value = {TOKEN},
        .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};
    urma_target_seg_t *seg = urma_register_seg(ctx, &cfg);

    must(seg != NULL, "urma_register_seg");
    return seg;
}

static void share_memory(void)
{
    urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE};
    urma_token_t token = {TOKEN};

    source_seg = share(source, sizeof source);
    target_seg = share(target, sizeof target);
    target_there = urma_import_seg(ctx, &target_seg->seg, &token, 0, flag);
    must(target_there != NULL, "urma_import_seg");
}

static void open_way(struct way *w, int lock_free)
{
    urma_jfc_cfg_t jfc = {.depth = 2 * DEPTH};
    urma_jfr_cfg_t jfr = {.depth = 1, .trans_mode = URMA_TM_RC, .max_sge = 1};
    urma_jetty_cfg_t jetty = {
        .flag.bs.share_jfr = 1,
        .jfs_cfg = {
            .depth = DEPTH, .trans_mode = URMA_TM_RC, .max_sge = 1, .err_timeout = 17, .rnr_retry = 7}};
    urma_token_t none = {0};
    urma_rjetty_t *r;
    uint32_t length;

    jfc.flag.bs.lock_free = lock_free;
    jetty.jfs_cfg.flag.bs.lock_free = lock_free; // "I promise that one thread at a time posts here"
    must((w->jfc = urma_create_jfc(ctx, &jfc)) != NULL, "urma_create_jfc");
    for (int i = 0; i < 2; i++) {
        jfr.jfc = jetty.jfs_cfg.jfc = w->jfc;
        must((w->jfr[i] = urma_create_jfr(ctx, &jfr)) != NULL, "urma_create_jfr");
        jetty.shared.jfr = w->jfr[i];
        must((w->jetty[i] = urma_create_jetty(ctx, &jetty)) != NULL, "urma_create_jetty");
    }
    for (int i = 0; i < 2; i++) {
        must(urma_get_rjetty(w->jetty[1 - i], &r, &length) == URMA_SUCCESS, "urma_get_rjetty");
        must((w->peer[i] = urma_import_jetty(ctx, r, &none)) != NULL, "urma_import_jetty");
        urma_put_rjetty(r);
        must(urma_bind_jetty(w->jetty[i], w->peer[i]) == URMA_SUCCESS, "urma_bind_jetty");
    }
}

static void close_way(struct way *w)
{
    for (int i = 0; i < 2; i++) {
        must(urma_unbind_jetty(w->jetty[i]) == URMA_SUCCESS, "urma_unbind_jetty");
        must(urma_unimport_jetty(w->peer[i]) == URMA_SUCCESS, "urma_unimport_jetty");
    }
    for (int i = 0; i < 2; i++) {
        must(urma_delete_jetty(w->jetty[i]) == URMA_SUCCESS, "urma_delete_jetty");
        must(urma_delete_jfr(w->jfr[i]) == URMA_SUCCESS, "urma_delete_jfr");
    }
    must(urma_delete_jfc(w->jfc) == URMA_SUCCESS, "urma_delete_jfc");
}

// Post one WRITE of word `which` from source to target.
static urma_status_t post(struct way *w, unsigned which, uint64_t user_ctx)
{
    urma_sge_t here = {.addr = (uintptr_t)&source[which], .len = 8, .tseg = source_seg};
    urma_sge_t there = {.addr = (uintptr_t)&target[which], .len = 8, .tseg = target_there};
    urma_jfs_wr_t *bad, wr = {.opcode = URMA_OPC_WRITE,
                              .flag.bs.complete_enable = 1,
                              .tjetty = w->peer[0],
                              .user_ctx = user_ctx};

    wr.rw.src = (urma_sg_t){&here, 1};
    wr.rw.dst = (urma_sg_t){&there, 1};
    return urma_post_jetty_send_wr(w->jetty[0], &wr, &bad); // SGEs and WR are ours again when it returns
}

static unsigned take_completions(struct way *w)
{
    urma_cr_t cr[16];
    int n = urma_poll_jfc(w->jfc, 16, cr);

    must(n >= 0, "urma_poll_jfc");
    for (int i = 0; i < n; i++)
        must(cr[i].status == URMA_CR_SUCCESS, "a WRITE");
    return (unsigned)n;
}

// ---- 1 and 2: one thread, many entries

static void fill_while_it_consumes(void)
{
    unsigned posted = 0, done = 0, most = 0;
    struct way w;

    open_way(&w, 0);
    while (done < WRITES) {
        while (posted < WRITES && post(&w, 0, posted) == URMA_SUCCESS)
            posted++; // until the queue is full: nobody waited for the device to be idle
        if (posted - done > most)
            most = posted - done;
        done += take_completions(&w);
    }
    printf("1. filled while the device consumed: %u posted, %u completed\n", posted, done);
    printf("2. unfinished at once in one queue: %u, its depth is %d\n", most, DEPTH);
    close_way(&w);
}

// ---- 3 and 4: many threads

struct worker {
    pthread_t thread;
    unsigned which;
    struct way *way;
    pthread_mutex_t *polling; // one thread polls at a time, and counts for all; NULL: a JFC of its own
    unsigned *done;           // completions of the way
};

static unsigned reap(struct worker *me)
{
    unsigned now;

    if (me->polling)
        pthread_mutex_lock(me->polling);
    *me->done += take_completions(me->way);
    now = *me->done;
    if (me->polling)
        pthread_mutex_unlock(me->polling);
    return now;
}

static void *write_many(void *arg)
{
    struct worker *me = arg;

    for (unsigned i = 0; i < WRITES; i++)
        while (post(me->way, me->which, i) != URMA_SUCCESS)
            reap(me); // full: completions make room, whoever takes them
    return NULL;
}

static unsigned run(struct worker *workers, unsigned expected_per_way)
{
    unsigned landed = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        source[i] = i + 1;
        target[i] = 0;
        must(pthread_create(&workers[i].thread, NULL, write_many, &workers[i]) == 0, "pthread_create");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        while (reap(&workers[i]) < expected_per_way)
            ;
        landed += target[i] == i + 1;
    }
    return landed;
}

static void threads_on_one_jetty(void)
{
    pthread_mutex_t polling = PTHREAD_MUTEX_INITIALIZER;
    struct worker workers[THREADS];
    unsigned done = 0, landed;
    struct way w;

    open_way(&w, 0); // locked: check room, fill, publish and ring are one turn of one thread
    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (struct worker){.which = i, .way = &w, .polling = &polling, .done = &done};
    landed = run(workers, THREADS * WRITES);
    printf("3. %d threads on one locked jetty: %u WRITEs completed, %u of %d words landed\n", THREADS, done,
           landed, THREADS);
    close_way(&w);
}

static void threads_on_their_own(void)
{
    unsigned done[THREADS] = {0}, sum = 0, landed;
    struct worker workers[THREADS];
    struct way w[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        open_way(&w[i], 1);
        workers[i] = (struct worker){.which = i, .way = &w[i], .done = &done[i]};
    }
    landed = run(workers, WRITES);
    for (unsigned i = 0; i < THREADS; i++) {
        sum += done[i];
        close_way(&w[i]);
    }
    printf("4. %d threads on lock_free jettys of their own: %u WRITEs completed, %u of %d words landed\n",
           THREADS, sum, landed, THREADS);
}

int main(int argc, char **argv)
{
    open_device(argc > 1 ? argv[1] : NULL);
    share_memory();
    fill_while_it_consumes();
    threads_on_one_jetty();
    threads_on_their_own();
    must(urma_unimport_seg(target_there) == URMA_SUCCESS, "urma_unimport_seg");
    must(urma_unregister_seg(target_seg) == URMA_SUCCESS, "urma_unregister_seg");
    must(urma_unregister_seg(source_seg) == URMA_SUCCESS, "urma_unregister_seg");
    must(urma_delete_context(ctx) == URMA_SUCCESS, "urma_delete_context");
    return urma_uninit();
}
