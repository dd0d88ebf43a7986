// SPDX-License-Identifier: MIT
// A queue that failed and is used anew: what was on its way to the old life must not reach the new one, no
// receive completes twice, and one that was taken is found by its claim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"

static struct duo d;
static struct dock_sge sge;

static void nap_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int to_state(struct dock_qp *qp, enum dock_state to)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = to};

    return dock_qp_modify(qp, &m);
}

static void expect(struct dock_cq *cq, uint64_t id, uint32_t status)
{
    struct dock_wc wc;

    assert_true(end_wait(cq, &wc, 10000 * slow_down()));
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.status, status);
}

static void expect_none(struct dock_cq *cq)
{
    struct dock_wc wc;

    assert_false(end_wait(cq, &wc, 2));
}

static void reset_and_connect(void)
{
    assert_int_equal(to_state(d.near.e.qp, DOCK_RESET), 0);
    assert_int_equal(to_state(d.far->e.qp, DOCK_RESET), 0);
    pair_connect(&d.near.e, &d.far->e);
}

// The engine hears of each failure a moment after the program: by then the program may have reset both
// queues, connected them and posted receives.
static void what_the_engine_still_had_to_do_does_not_reach_the_next_life(void **state)
{
    (void)state;
    duo_open(&d, SELF_ARENA, NULL);
    for (unsigned i = 0; i < 400; i++) {
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, 8, &d.mr, d.mem);
        wr.rkey += 2; // refused by the far end, which fails as well
        assert_int_equal(end_post(&d.near.e, &wr), 0);
        expect(d.near.e.scq, 0, DOCK_ST_REM_ACCESS);
        nap_us(i % 8 * 30);
        reset_and_connect();
        assert_int_equal(end_recv(&d.near.e, 1, d.near.e.mem, 8), 0);
        assert_int_equal(end_recv(&d.far->e, 1, d.far->e.mem, 8), 0);
        nap_us(300);
        assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_RTS);
        assert_int_equal(dock_qp_state(d.far->e.qp), DOCK_RTS);
        wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);
        assert_int_equal(end_post(&d.near.e, &wr), 0);
        expect(d.near.e.scq, 0, DOCK_OK);
        expect(d.far->e.rcq, 1, DOCK_OK);
    }
    duo_close(&d);
}

static void from_reset_to_err_is_err(void **state)
{
    struct duo_opts o = {.unconnected = true};

    (void)state;
    duo_open(&d, SELF_ARENA, &o);
    assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_RESET);
    assert_int_equal(to_state(d.near.e.qp, DOCK_ERR), 0);
    assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_ERR);
    duo_close(&d);
}

// ---- a receive is posted to a queue in ERR while a message is being placed in the one before

static _Atomic int inside, leave;

static void stay_inside(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    uint64_t until = dock_now_ns() + 1000000000ull * slow_down();

    (void)object;
    (void)sequence;
    if (at != DOCK_AT_TAKEN || inside)
        return;
    inside = 1;
    while (!leave && dock_now_ns() < until)
        nap_us(100);
}

static void *send_one(void *arg)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);

    (void)arg;
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    return NULL;
}

static void *far_to_err(void *arg)
{
    (void)arg;
    assert_int_equal(to_state(d.far->e.qp, DOCK_ERR), 0);
    return NULL;
}

static void *post_late(void *arg)
{
    (void)arg;
    assert_int_equal(end_recv(&d.far->e, 2, d.far->e.mem + 64, 8), 0);
    return NULL;
}

static void a_receive_that_is_being_filled_is_not_flushed_beside_its_completion(void **state)
{
    pthread_t sender, failer, poster;

    (void)state;
    duo_open(&d, SELF_ARENA, NULL);
    assert_int_equal(end_recv(&d.far->e, 1, d.far->e.mem, 8), 0);
    dock_probe_hook = stay_inside;
    pthread_create(&sender, NULL, send_one, NULL);
    while (!inside)
        nap_us(100);
    pthread_create(&failer, NULL, far_to_err, NULL);
    while (dock_qp_state(d.far->e.qp) != DOCK_ERR)
        nap_us(100);
    pthread_create(&poster, NULL, post_late, NULL);
    nap_us(20000);
    leave = 1;
    pthread_join(sender, NULL);
    pthread_join(failer, NULL);
    pthread_join(poster, NULL);
    dock_probe_hook = NULL;
    expect(d.far->e.rcq, 1, DOCK_OK);
    expect(d.far->e.rcq, 2, DOCK_ST_FLUSH);
    expect_none(d.far->e.rcq);
    expect(d.near.e.scq, 0, DOCK_OK);
    duo_close(&d);
}

// ---- a lone sender takes a receive by one step, its claim first

static struct {
    unsigned taken; // by the short way
    uint64_t word[2], claim[2];
} heard;

static void look_at_claims(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    const struct dock_rqview *v = &d.far->e.qp->rq->view;
    bool taken = at == DOCK_AT_TAKEN;

    (void)object;
    if (!(sequence & DOCK_PROBE_STRAIGHT) || (at != DOCK_AT_CLAIM && !taken))
        return;
    heard.word[taken] = dock_peek64(&v->rec->ci);
    heard.claim[taken] = dock_peek64(&v->claims[dock_peek32(&v->index[(uint32_t)sequence & (v->size - 1)])]);
    heard.taken += taken;
}

// The first goes the long way, which finds the keys.
static void send_three(const struct duo_opts *o)
{
    duo_open(&d, SELF_ARENA, o);
    memset(&heard, 0, sizeof heard);
    dock_probe_straight = true;
    dock_probe_hook = look_at_claims;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(end_recv(&d.far->e, i, d.far->e.mem, 8), 0);
        send_one(NULL);
        expect(d.far->e.rcq, i, DOCK_OK);
        expect(d.near.e.scq, 0, DOCK_OK);
    }
    dock_probe_hook = NULL;
    dock_probe_straight = false;
}

static void a_claim_stands_before_its_receive_is_taken(void **state)
{
    (void)state;
    send_three(NULL);
    assert_int_equal(heard.taken, 2);
    uint64_t claim = dock_claim_make(d.near.e.qp->dev->waiter.me, dock_qp_number(d.far->e.qp));
    assert_int_equal(heard.claim[0], claim); // of a number that had none
    assert_int_equal(heard.claim[1], claim);
    assert_int_equal(dock_word_holder(heard.word[0]), 0); // nobody waits for one that dies here
    assert_int_equal(heard.word[1], heard.word[0] + 1);
    duo_close(&d);
}

static void of_a_queue_with_many_senders_receives_are_taken_by_the_lock(void **state)
{
    struct duo_opts o = {.far = {.open = true}};

    (void)state;
    send_three(&o);
    assert_int_equal(heard.taken, 0);
    duo_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_engine_still_had_to_do_does_not_reach_the_next_life),
        cmocka_unit_test(from_reset_to_err_is_err),
        cmocka_unit_test(a_receive_that_is_being_filled_is_not_flushed_beside_its_completion),
        cmocka_unit_test(a_claim_stands_before_its_receive_is_taken),
        cmocka_unit_test(of_a_queue_with_many_senders_receives_are_taken_by_the_lock),
    };

    return cmocka_run_group_tests_name("a failed queue used anew", tests, NULL, NULL);
}
