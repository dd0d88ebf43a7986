// SPDX-License-Identifier: MIT
// Objects of URMA in the hands of several threads: groups that are joined while messages reach them, names
// that are made and given back at once, a jetty that is bound beside its posters, events that two threads
// acknowledge. Here, and not with the other tests of the face, so that ThreadSanitizer sees it.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

enum { THREADS = 3, ROUNDS = 60 };

static struct uend_options rm = {.mode = URMA_TM_RM, .depth = 64, .recv_depth = 64, .jfc_depth = 512};
static _Atomic unsigned wrong; // a check in a thread cannot end the test
static _Atomic bool over;

static void see(bool right, const char *what, long got)
{
    if (right)
        return;
    atomic_fetch_add(&wrong, 1);
    printf("expected: %s, got %ld\n", what, got);
}

static void in_threads(unsigned n, void *(*body)(void *), void *arg, void (*meanwhile)(void *))
{
    pthread_t t[8];

    atomic_store(&over, false);
    for (unsigned i = 0; i < n; i++)
        CHECK_INT(pthread_create(&t[i], NULL, body, arg), 0);
    if (meanwhile)
        meanwhile(arg);
    atomic_store(&over, true);
    for (unsigned i = 0; i < n; i++)
        CHECK_INT(pthread_join(t[i], NULL), 0);
    CHECK_INT(atomic_load(&wrong), 0);
}

// ---- groups

struct group {
    struct uend home, from;
    urma_jetty_grp_t *g;
    urma_jetty_t *stays;
    urma_target_jetty_t *target;
};

static urma_jetty_grp_cfg_t named(const char *name, urma_jetty_grp_policy_t policy)
{
    urma_jetty_grp_cfg_t cfg = {.policy = policy, .token_value = {UEND_TOKEN}};

    snprintf(cfg.name, sizeof cfg.name, "%s", name);
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    return cfg;
}

static urma_jetty_t *join(struct group *s)
{
    urma_jetty_cfg_t cfg = s->home.jetty->jetty_cfg;

    cfg.jetty_grp = s->g;
    return urma_create_jetty(s->home.ctx, &cfg);
}

static void open_group(struct group *s)
{
    urma_jetty_grp_cfg_t cfg = named("threads", URMA_JETTY_GRP_POLICY_RR);
    urma_rjetty_t r = {.trans_mode = URMA_TM_RM, .type = URMA_JETTY_GROUP};
    urma_token_t token = {UEND_TOKEN};

    uend_open(&s->home, &rm);
    uend_open(&s->from, &rm);
    s->g = urma_create_jetty_grp(s->home.ctx, &cfg);
    CHECK(s->g != NULL);
    s->stays = join(s);
    CHECK(s->stays != NULL);
    r.jetty_id = s->g->jetty_grp_id;
    r.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    s->target = urma_import_jetty(s->from.ctx, &r, &token);
    CHECK(s->target != NULL);
}

static void close_group(struct group *s)
{
    CHECK_INT(urma_unimport_jetty(s->target), 0);
    CHECK_INT(urma_delete_jetty(s->stays), 0);
    CHECK_INT(s->g->jetty_cnt, 0);
    CHECK_INT(urma_delete_jetty_grp(s->g), 0);
    uend_close(&s->from);
    uend_close(&s->home);
}

static void *joins_and_leaves(void *arg)
{
    struct group *s = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        urma_jetty_t *j = join(s);
        see(j != NULL, "a jetty of the group", errno);
        if (j)
            see(urma_delete_jetty(j) == 0, "deletion of a member", i);
    }
    return NULL;
}

// A message goes to whoever is a member when it is begun; one whose member leaves under it may fail, and
// then says so.
static void sends_to_the_group(void *arg)
{
    struct group *s = arg;
    unsigned arrived = 0, sent = 0, received = 0;
    struct uwr w;
    urma_cr_t cr;

    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_INT(uend_recv(&s->home, i, 0, 64), 0);
        uend_wr(&s->from, &w, URMA_OPC_SEND, i, 0, 8);
        w.wr.tjetty = s->target;
        CHECK_INT(uend_post(&s->from, &w.wr, NULL), 0);
        CHECK(ucr_poll(s->from.jfc, &cr, 20000));
        CHECK_INT(cr.user_ctx, i);
        sent += cr.status == URMA_CR_SUCCESS;
        for (; urma_poll_jfc(s->home.rjfc, 1, &cr) == 1; received++)
            arrived += cr.status == URMA_CR_SUCCESS;
    }
    while (arrived < sent && ucr_poll(s->home.rjfc, &cr, 1000))
        arrived += cr.status == URMA_CR_SUCCESS;
    // The completion of an arrival goes with a member that is deleted before it was polled: some may be
    // missing.
    CHECK(sent > 0);
    CHECK(arrived > 0);
    CHECK(arrived <= sent);
}

static void members_come_and_go_while_messages_reach_the_group(void **state)
{
    struct group s;

    (void)state;
    open_group(&s);
    in_threads(THREADS, joins_and_leaves, &s, sends_to_the_group);
    CHECK_INT(s.g->jetty_cnt, 1);
    close_group(&s);
}

static void *takes_and_gives_back_a_name(void *arg)
{
    urma_jetty_grp_cfg_t cfg = named("shared", URMA_JETTY_GRP_POLICY_RR);
    struct uend *e = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        urma_jetty_grp_t *g = urma_create_jetty_grp(e->ctx, &cfg);
        see(g != NULL, "a group of that name", errno);
        if (!g)
            continue;
        see(strcmp(g->cfg.name, "shared") == 0, "the name", 0);
        see(urma_delete_jetty_grp(g) == 0, "deletion of one use", i);
    }
    return NULL;
}

static void a_group_lives_until_its_last_creation_is_deleted(void **state)
{
    urma_jetty_grp_cfg_t other = named("shared", URMA_JETTY_GRP_POLICY_HASH_HINT);
    urma_jetty_grp_t *g;
    struct uend e;

    (void)state;
    uend_open(&e, &rm);
    in_threads(THREADS, takes_and_gives_back_a_name, &e, NULL);
    g = urma_create_jetty_grp(e.ctx, &other); // the name is free: another policy is no contradiction
    CHECK(g != NULL);
    CHECK_INT(urma_delete_jetty_grp(g), 0);
    uend_close(&e);
}

// ---- binding beside posting

struct bound {
    struct uend l, r;
    _Atomic unsigned accepted;
};

static void *posts_to_whoever_is_bound(void *arg)
{
    struct bound *b = arg;

    while (!atomic_load(&over)) {
        struct uwr w;
        uend_wr(&b->l, &w, URMA_OPC_WRITE, 1, 0, 8);
        urma_status_t status = uend_post(&b->l, &w.wr, NULL);
        atomic_fetch_add(&b->accepted, status == URMA_SUCCESS);
        see(status == URMA_SUCCESS || status == URMA_EINVAL || status == URMA_ENOMEM,
            "accepted, not bound, or full", (long)status);
        sched_yield();
    }
    return NULL;
}

static unsigned completions(struct bound *b)
{
    urma_cr_t cr[16];
    unsigned all = 0;
    int n;

    while ((n = urma_poll_jfc(b->l.jfc, 16, cr)) > 0) {
        for (int i = 0; i < n; i++)
            see(cr[i].status == URMA_CR_SUCCESS || cr[i].status == URMA_CR_WR_FLUSH_ERR,
                "done, or flushed by the unbinding", (long)cr[i].status);
        all += (unsigned)n;
    }
    return all;
}

static unsigned completed;

static void binds_and_unbinds(void *arg)
{
    struct bound *b = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_INT(urma_unbind_jetty(b->l.jetty), 0);
        completed += completions(b);
        CHECK_INT(urma_bind_jetty(b->l.jetty, b->l.target), 0);
        completed += completions(b);
    }
}

static void what_is_posted_while_a_jetty_is_bound_anew_is_done_or_flushed_once(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RC, .depth = 64, .jfc_depth = 512};
    static struct bound b;
    struct uwr w;

    (void)state;
    completed = 0;
    upair_open(&b.l, &b.r, &o);
    in_threads(2, posts_to_whoever_is_bound, &b, binds_and_unbinds);
    for (unsigned tries = 0; completed < atomic_load(&b.accepted) && tries < 20000; tries++) {
        completed += completions(&b);
        sched_yield();
    }
    CHECK_INT(completed, atomic_load(&b.accepted));
    uend_wr(&b.l, &w, URMA_OPC_WRITE, 7, 0, 8);
    CHECK_INT(uend_post(&b.l, &w.wr, NULL), 0);
    ucr_expect(b.l.jfc, 7, URMA_CR_SUCCESS, NULL);
    upair_close(&b.l, &b.r);
}

// A lock_free jetty is posted to by one thread; a bind by notice comes from another, the notifier's, and this
// is what it calls.
static void *binds_again(void *arg)
{
    struct bound *b = arg;

    while (!atomic_load(&over))
        see(urma_bind_jetty(b->l.jetty, b->l.target) == 0, "the same bind again", 0);
    return NULL;
}

static void posts_and_polls(void *arg)
{
    struct bound *b = arg;
    struct uwr w;

    for (uint64_t i = 0; i < ROUNDS * 50; i++) {
        uend_wr(&b->l, &w, URMA_OPC_WRITE, i, 0, 8);
        CHECK_INT(uend_post(&b->l, &w.wr, NULL), 0);
        ucr_expect(b->l.jfc, i, URMA_CR_SUCCESS, NULL);
    }
}

static void a_bind_takes_nothing_from_who_posts_without_a_lock(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RC, .flag = {.bs = {.lock_free = 1}}};
    static struct bound b;

    (void)state;
    upair_open(&b.l, &b.r, &o);
    in_threads(1, binds_again, &b, posts_and_polls);
    upair_close(&b.l, &b.r);
}

// The rest of a queue's calls goes beside its posts.
static void *asks_where_the_ring_stands(void *arg)
{
    struct bound *b = arg;
    uint8_t ring = 0;
    uint16_t at;

    while (!atomic_load(&over)) {
        see(urma_get_jetty_opt(b->l.jetty, URMA_JFS_PI, &at, sizeof at) == 0, "its PI", at);
        see(urma_set_jetty_opt(b->l.jetty, URMA_JFS_DB_STATUS, &ring, 1) == 0, "nothing to ring for", at);
    }
    return NULL;
}

static void who_asks_for_the_ring_and_who_posts_meet(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RC};
    static struct bound b;

    (void)state;
    upair_open(&b.l, &b.r, &o);
    in_threads(1, asks_where_the_ring_stands, &b, posts_and_polls);
    upair_close(&b.l, &b.r);
}

struct contest {
    struct uend e[THREADS], to;
    urma_target_jetty_t *target;
    _Atomic unsigned next, winners;
    pthread_barrier_t start;
};

static void *wants_the_target(void *arg)
{
    struct contest *c = arg;
    struct uend *e = &c->e[atomic_fetch_add(&c->next, 1)];

    pthread_barrier_wait(&c->start);
    urma_status_t status = urma_bind_jetty(e->jetty, c->target);
    see(status == URMA_SUCCESS || status == URMA_EINVAL, "bound, or taken by another", (long)status);
    atomic_fetch_add(&c->winners, status == URMA_SUCCESS);
    return NULL;
}

static void one_of_several_jettys_gets_a_target(void **state)
{
    static struct contest c;
    struct uend_address at;
    urma_token_t token = {UEND_TOKEN};

    (void)state;
    uend_open(&c.to, NULL);
    at = uend_address(&c.to);
    for (unsigned i = 0; i < THREADS; i++)
        uend_open(&c.e[i], NULL);
    for (unsigned round = 0; round < 20; round++) {
        c.target = urma_import_jetty(c.to.ctx, &at.rjetty, &token);
        CHECK(c.target != NULL);
        atomic_store(&c.next, 0);
        atomic_store(&c.winners, 0);
        CHECK_INT(pthread_barrier_init(&c.start, NULL, THREADS), 0);
        in_threads(THREADS, wants_the_target, &c, NULL);
        pthread_barrier_destroy(&c.start);
        CHECK_INT(atomic_load(&c.winners), 1);
        CHECK_INT(urma_unimport_jetty(c.target), URMA_FAIL);
        for (unsigned i = 0; i < THREADS; i++)
            if (c.e[i].jetty->remote_jetty)
                CHECK_INT(urma_unbind_jetty(c.e[i].jetty), 0);
        CHECK_INT(urma_unimport_jetty(c.target), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        uend_close(&c.e[i]);
    uend_close(&c.to);
}

// ---- acknowledgements

struct events {
    struct uend l, r;
    _Atomic unsigned owed;
};

static void *acknowledges(void *arg)
{
    struct events *e = arg;
    uint32_t one = 1;

    while (!atomic_load(&over) || atomic_load(&e->owed)) {
        unsigned owed = atomic_load(&e->owed);
        if (owed && atomic_compare_exchange_strong(&e->owed, &owed, owed - 1))
            urma_ack_jfc(&e->l.jfc, &one, 1);
        else
            sched_yield();
    }
    return NULL;
}

static void takes_events(void *arg)
{
    struct events *e = arg;
    urma_jfc_t *fired[1];
    struct uwr w;

    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_INT(urma_rearm_jfc(e->l.jfc, false), 0);
        uend_wr(&e->l, &w, URMA_OPC_WRITE, i, 0, 8);
        CHECK_INT(uend_post(&e->l, &w.wr, NULL), 0);
        CHECK_INT(urma_wait_jfc(e->l.jfce, 1, 20000, fired), 1);
        CHECK(fired[0] == e->l.jfc);
        atomic_fetch_add(&e->owed, 1);
        ucr_expect(e->l.jfc, i, URMA_CR_SUCCESS, NULL);
    }
}

static void what_two_threads_acknowledge_is_counted_once_each(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .events = true, .jfc_flag = {.bs = {.non_blocking = 1}}};
    static struct events e;

    (void)state;
    upair_open(&e.l, &e.r, &o);
    in_threads(2, acknowledges, &e, takes_events);
    CHECK_INT(e.l.jfc->comp_events_acked, ROUNDS);
    upair_close(&e.l, &e.r); // a deletion of a JFC that is owed one would say EAGAIN
}

// ---- notices

struct asked {
    struct uend e, to;
    struct uend_address at;
};

// An import is given back at once, waited for, or bound: each thread with its own jetty and notifier.
static void *imports_by_notice(void *arg)
{
    struct asked *a = arg;
    urma_token_t token = {UEND_TOKEN};
    urma_notifier_t *n = urma_create_notifier(a->e.ctx);
    urma_notify_t got;

    see(n != NULL, "a notifier", errno);
    for (unsigned i = 0; n && i < ROUNDS; i++) {
        urma_target_jetty_t *t = urma_import_jetty_async(n, &a->at.rjetty, &token, i, 20000);
        see(t != NULL, "a handle", errno);
        if (i % 2)
            see(urma_wait_notify(n, 1, &got, 20000) == 1 && got.user_ctx == i,
                "its own notice, none of a handle given back", i);
        see(urma_unimport_jetty_async(t) == 0, "the end of a handle", i);
    }
    if (n)
        see(urma_delete_notifier(n) == 0, "the end of a notifier", 0);
    return NULL;
}

static void handles_are_given_back_while_their_import_is_under_way(void **state)
{
    static struct asked a;

    (void)state;
    uend_open(&a.e, NULL);
    uend_open(&a.to, NULL);
    a.at = uend_address(&a.to);
    in_threads(THREADS, imports_by_notice, &a, NULL);
    uend_close(&a.e);
    uend_close(&a.to);
}

// ---- deletion. The guide leaves the use of an object beside its own deletion undefined; what is promised is
// that nothing else is touched by it.

static void *makes_and_deletes_beside(void *arg)
{
    struct uend *e = arg;

    while (!atomic_load(&over)) {
        urma_jetty_t *j =
            urma_create_jetty(e->ctx, &(urma_jetty_cfg_t){.flag = e->jetty->jetty_cfg.flag,
                                                          .jfs_cfg = e->jetty->jetty_cfg.jfs_cfg,
                                                          .shared = e->jetty->jetty_cfg.shared});
        struct uwr w;
        urma_jfs_wr_t *bad;
        see(j != NULL, "a jetty", errno);
        if (!j)
            continue;
        uend_wr(e, &w, URMA_OPC_WRITE, UINT64_MAX, 4096, 8);
        see(urma_post_jetty_send_wr(j, &w.wr, &bad) == 0, "a post on it", 0);
        see(urma_delete_jetty(j) == 0, "its deletion, with a CR that nobody polled", 0);
    }
    return NULL;
}

static void uses_its_own(void *arg)
{
    struct uend *e = arg;
    struct uwr w;
    urma_cr_t cr;

    for (uint64_t i = 0; i < ROUNDS * 4; i++) {
        uend_wr(e, &w, URMA_OPC_WRITE, i, 0, 8);
        CHECK_INT(uend_post(e, &w.wr, NULL), 0);
        do
            CHECK(ucr_poll(e->jfc, &cr, 20000));
        while (cr.user_ctx == UINT64_MAX); // of the other, before it went
        CHECK_INT(cr.user_ctx, i);
        CHECK_INT(cr.status, URMA_CR_SUCCESS);
        CHECK_INT(urma_delete_jfc(e->jfc), URMA_FAIL); // in use: not deleted under anybody
    }
}

static void p14_what_lies_beside_a_deleted_object_goes_on(void **state)
{
    struct uend l, r;
    urma_cr_t cr;

    (void)state;
    upair_open(&l, &r, &rm);
    in_threads(2, makes_and_deletes_beside, &l, uses_its_own);
    CHECK(!ucr_poll(l.jfc, &cr, 0)); // nothing is left of what was deleted
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_and_go_while_messages_reach_the_group),
        cmocka_unit_test(a_group_lives_until_its_last_creation_is_deleted),
        cmocka_unit_test(what_is_posted_while_a_jetty_is_bound_anew_is_done_or_flushed_once),
        cmocka_unit_test(a_bind_takes_nothing_from_who_posts_without_a_lock),
        cmocka_unit_test(who_asks_for_the_ring_and_who_posts_meet),
        cmocka_unit_test(one_of_several_jettys_gets_a_target),
        cmocka_unit_test(what_two_threads_acknowledge_is_counted_once_each),
        cmocka_unit_test(p14_what_lies_beside_a_deleted_object_goes_on),
        cmocka_unit_test(handles_are_given_back_while_their_import_is_under_way),
    };

    if (getenv("DRYDOCK_EMULATED"))
        return 77; // plain memory is reached through calls of the kernel that emulators do not have
    return cmocka_run_group_tests_name("urma threads", tests, NULL, NULL);
}
