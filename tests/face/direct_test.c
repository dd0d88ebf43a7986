// SPDX-License-Identifier: MIT
// Direct drive through verbs: the program's own threads fill WQEs, ring and poll by include/drydock/direct.h.
#define DRYDOCK_DIRECT_CHECK
#define DRYDOCK_PRODUCER producer

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

static _Thread_local unsigned producer = 1;

#include "drydock/verbs.h"
#include "face/lib/ends.h"

#define BLOCKS 16u
#define LOOKS 2000000000ull // a test that hangs is ended by its time limit, with the line it hangs in

struct fixture {
    struct end l, r; // l drives, r owns the target memory
    struct ibv_cq *cq;
    struct drydock_queue q;
    struct drydock_target t;
    int log, stderr_was;
};

// What the device says goes to a file, for tests that read it.
static void listen_to_words(struct fixture *f)
{
    f->log = memfd_create("words", 0);
    f->stderr_was = dup(2);
    CHECK(f->log >= 0 && f->stderr_was >= 0 && dup2(f->log, 2) == 2);
}

static void expect_words(struct fixture *f, const char *words)
{
    char text[4096] = "";

    CHECK(dup2(f->stderr_was, 2) == 2);
    ssize_t n = pread(f->log, text, sizeof text - 1, 0);
    CHECK(n >= 0);
    close(f->log);
    close(f->stderr_was);
    if (!strstr(text, words))
        check_failed(__FILE__, __LINE__, "the device's words: expected \"%s\", got \"%s\"", words, text);
}

static struct ibv_qp *direct_qp(struct end *e, struct ibv_cq *cq, uint32_t blocks)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = e->rcq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = blocks, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

    return drydock_create_direct_qp(e->pd, &attr);
}

static void open_sized(struct fixture *f, const struct end_options *options)
{
    struct end_address left, right;

    end_open(&f->l, options);
    end_open(&f->r, options);
    CHECK_INT(ibv_destroy_qp(f->l.qp), 0);
    f->cq = ibv_create_cq(f->l.ctx, BLOCKS, NULL, NULL, 0);
    CHECK(f->cq != NULL);
    f->l.qp = direct_qp(&f->l, f->cq, BLOCKS);
    CHECK(f->l.qp != NULL);
    left = end_address(&f->l);
    right = end_address(&f->r);
    end_to_rts(&f->l, &right);
    end_to_rts(&f->r, &left);
    CHECK_INT(drydock_direct_queue(f->l.qp, &f->q), 0);
    CHECK_INT(f->q.blocks, BLOCKS);
    f->t = drydock_target_of(right.addr, f->r.opt.bytes, right.rkey);
    producer = 1;
}

static void open_direct(struct fixture *f)
{
    open_sized(f, NULL);
}

static void close_direct(struct fixture *f)
{
    CHECK_INT(ibv_destroy_qp(f->l.qp), 0);
    CHECK_INT(ibv_destroy_cq(f->cq), 0);
    f->l.qp = NULL;
    end_close(&f->l);
    end_close(&f->r);
}

static void expect_quiet(struct fixture *f)
{
    CHECK_INT(drydock_poll_until(&f->q, f->q.rung, LOOKS), 0);
    CHECK_INT(f->q.tail, f->q.rung);
}

static uint64_t *far_word(struct fixture *f, unsigned i)
{
    return (uint64_t *)(void *)f->r.buf + i;
}

static uint64_t *near_word(struct fixture *f, unsigned i)
{
    return (uint64_t *)(void *)f->l.buf + i;
}

static void every_operation_lands_and_is_told(void **state)
{
    struct fixture f;
    struct ibv_wc wc;

    (void)state;
    open_direct(&f);
    for (unsigned pass = 0; pass < 40; pass++) { // two-block WQEs come to lie across the ring's end
        *near_word(&f, 0) = 1000 + pass;
        *far_word(&f, 5) = 70;
        *far_word(&f, 6) = 5000 + pass;
        CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, near_word(&f, 0), 8, 0), 0);
        CHECK_INT(drydock_post_write_notify(&f.q, &f.t, f.t.address + 8, near_word(&f, 0), 8, &f.t,
                                            f.t.address + 16, pass + 1, 0),
                  0);
        CHECK_INT(drydock_post_fetch_add(&f.q, &f.t, f.t.address + 40, near_word(&f, 9), 3, 0), 0);
        CHECK_INT(drydock_post_compare_swap(&f.q, &f.t, f.t.address + 40, near_word(&f, 10), 73, 9, 0), 0);
        CHECK_INT(drydock_post_read(&f.q, &f.t, f.t.address + 48, near_word(&f, 11), 8, DRYDOCK_COMPLETE), 0);
        drydock_ring(&f.q);
        expect_quiet(&f);
        CHECK_INT(*far_word(&f, 0), 1000 + pass);
        CHECK_INT(*far_word(&f, 1), 1000 + pass);
        CHECK_INT(*far_word(&f, 2), pass + 1);
        CHECK_INT(*near_word(&f, 9), 70);
        CHECK_INT(*near_word(&f, 10), 73);
        CHECK_INT(*far_word(&f, 5), 9);
        CHECK_INT(*near_word(&f, 11), 5000 + pass);
        CHECK_INT(f.q.polled, pass + 1); // one asked for a completion, and it covers the others
    }
    CHECK_INT(post_recv(&f.r, 31, 4096, 64), 0);
    CHECK_INT(drydock_post_send(&f.q, &f.t, f.l.buf, 24, DRYDOCK_COMPLETE), 0);
    drydock_ring(&f.q);
    expect_quiet(&f);
    expect_wc(f.r.rcq, 31, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 24);
    CHECK(!memcmp(f.r.buf + 4096, f.l.buf, 24));
    close_direct(&f);
}

static void nothing_moves_before_the_doorbell_and_one_ring_publishes_all(void **state)
{
    struct fixture f;

    (void)state;
    open_direct(&f);
    *far_word(&f, 0) = *far_word(&f, 1) = 0;
    *near_word(&f, 0) = 77;
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, near_word(&f, 0), 8, 0), 0);
    usleep(5000); // the engine looks every millisecond at the latest
    CHECK_INT(*far_word(&f, 0), 0);
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address + 8, near_word(&f, 0), 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&f.q);
    expect_quiet(&f);
    CHECK_INT(*far_word(&f, 0), 77);
    CHECK_INT(*far_word(&f, 1), 77);
    close_direct(&f);
}

static void a_full_ring_is_counted_in_blocks_and_refused_before_anything_is_written(void **state)
{
    struct fixture f;

    (void)state;
    open_direct(&f);
    for (unsigned i = 0; i < BLOCKS / 2; i++)
        CHECK_INT(drydock_post_fetch_add(&f.q, &f.t, f.t.address, near_word(&f, i), 1, DRYDOCK_COMPLETE), 0);
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, f.l.buf, 8, DRYDOCK_COMPLETE), DRYDOCK_FULL);
    drydock_ring(&f.q);
    CHECK_INT(drydock_poll_until(&f.q, f.q.rung - BLOCKS + 2, LOOKS), 0); // the first one is done
    CHECK_INT(drydock_post_fetch_add(&f.q, &f.t, f.t.address, near_word(&f, 8), 1, DRYDOCK_COMPLETE), 0);
    drydock_ring(&f.q);
    expect_quiet(&f);
    CHECK_INT(*far_word(&f, 0), BLOCKS / 2 + 1);
    for (unsigned i = 0; i <= BLOCKS / 2; i++)
        CHECK_INT(*near_word(&f, i), i);
    close_direct(&f);
}

static void a_lone_wqe_stored_whole_stands_for_the_doorbell(void **state)
{
    struct fixture f;

    (void)state;
    open_direct(&f);
    for (unsigned i = 1; i < 50; i++) {
        *near_word(&f, 0) = i;
        CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, near_word(&f, 0), 8, DRYDOCK_COMPLETE), 0);
        if (i % 3) // both ways of ringing, mixed
            CHECK_INT(drydock_ring_whole(&f.q), 0);
        else
            drydock_ring(&f.q);
        expect_quiet(&f);
        CHECK_INT(*far_word(&f, 0), i);
    }
    for (unsigned i = 50; i < 100; i++) { // and a doorbell behind it before the device has looked
        *near_word(&f, 0) = i;
        CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, near_word(&f, 0), 8, 0), 0);
        CHECK_INT(drydock_ring_whole(&f.q), 0);
        CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address + 8, near_word(&f, 0), 8, DRYDOCK_COMPLETE), 0);
        drydock_ring(&f.q);
        expect_quiet(&f);
        CHECK_INT(*far_word(&f, 0), i);
        CHECK_INT(*far_word(&f, 1), i);
    }
    CHECK_INT(drydock_ring_whole(&f.q), DRYDOCK_INVALID); // nothing was posted
    CHECK_INT(drydock_post_fetch_add(&f.q, &f.t, f.t.address, near_word(&f, 1), 1, DRYDOCK_COMPLETE), 0);
    CHECK_INT(drydock_ring_whole(&f.q), DRYDOCK_INVALID); // two blocks
    drydock_ring(&f.q);
    expect_quiet(&f);
    close_direct(&f);
}

static void quiet_returns_the_first_error_and_then_that_the_queue_is_lost(void **state)
{
    struct fixture f;
    struct drydock_target wrong;

    (void)state;
    open_direct(&f);
    wrong = f.t;
    wrong.token ^= 0x55;
    CHECK_INT(drydock_post_write(&f.q, &wrong, f.t.address, f.l.buf, 8, DRYDOCK_COMPLETE), 0);
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, f.l.buf, 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&f.q);
    CHECK_INT(drydock_quiet(&f.q), 0x302); // remote access
    CHECK_INT(drydock_quiet(&f.q) != 0, 1);
    CHECK_INT(end_state(&f.l), IBV_QPS_ERR);
    close_direct(&f);
}

static void wait_for_error(struct fixture *f)
{
    for (unsigned i = 0; i < 5000 && end_state(&f->l) != IBV_QPS_ERR; i++)
        usleep(1000);
    CHECK_INT(end_state(&f->l), IBV_QPS_ERR);
    CHECK(drydock_quiet(&f->q) != 0);
}

// Both read the head, both fill the slot, both publish the same next head.
static void two_producers_on_one_head_are_both_named(void **state)
{
    struct fixture f;
    struct drydock_queue other;

    (void)state;
    open_direct(&f);
    listen_to_words(&f);
    other = f.q; // the second producer has read the same head
    producer = 3;
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, near_word(&f, 0), 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&f.q);
    producer = 4;
    CHECK_INT(drydock_post_write(&other, &f.t, f.t.address + 8, near_word(&f, 1), 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&other);
    wait_for_error(&f);
    expect_words(&f, "producers 3 and 4 both wrote WQE 0 and the head moved once: one of the two is lost");
    close_direct(&f);
}

static void a_torn_wqe_is_named_with_its_producer_and_not_executed(void **state)
{
    struct fixture f;

    (void)state;
    open_direct(&f);
    listen_to_words(&f);
    *far_word(&f, 0) = 1;
    producer = 9;
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, near_word(&f, 0), 8, DRYDOCK_COMPLETE), 0);
    f.q.ring[56] ^= 8; // half of somebody else's WQE: another local address
    drydock_ring(&f.q);
    wait_for_error(&f);
    expect_words(&f, "WQE 0 is torn: producer 9");
    CHECK_INT(*far_word(&f, 0), 1);
    close_direct(&f);
}

// A slot is the producer's again when a completion that covers it was polled, not while the device works on
// it.
static void a_slot_that_changes_while_the_device_works_on_it_is_named(void **state)
{
    const struct end_options big = {.bytes = 32 << 20};
    struct fixture f;

    (void)state;
    open_sized(&f, &big);
    listen_to_words(&f);
    memset(f.l.buf, 1, big.bytes);
    CHECK_INT(drydock_post_write(&f.q, &f.t, f.t.address, f.l.buf, (uint32_t)big.bytes, DRYDOCK_COMPLETE), 0);
    drydock_ring(&f.q);
    while (!__atomic_load_n(f.r.buf, __ATOMIC_ACQUIRE))
        ;
    f.q.ring[3] ^= 0x10;
    wait_for_error(&f);
    expect_words(&f, "WQE 0 changed after the device had fetched it");
    close_direct(&f);
}

static void the_library_does_not_post_to_a_queue_that_is_driven(void **state)
{
    struct fixture f;
    struct ibv_sge sge;
    struct ibv_send_wr wr, *bad;

    (void)state;
    open_direct(&f);
    sge = end_sge(&f.l, 0, 8);
    wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, f.t.address, f.t.token);
    CHECK_INT(ibv_post_send(f.l.qp, &wr, &bad), EINVAL);
    CHECK(bad == &wr);
    CHECK_INT(*(uint32_t *)(void *)f.q.doorbell, f.q.rung);
    close_direct(&f);
}

static void what_cannot_be_driven_is_refused(void **state)
{
    struct end e;
    struct drydock_queue q;
    struct ibv_qp_init_attr attr = {0};
    struct ibv_cq *small;

    (void)state;
    end_open(&e, NULL);
    CHECK_INT(drydock_direct_queue(e.qp, &q), EINVAL); // made for the library
    CHECK_INT(drydock_direct_queue(NULL, &q), EINVAL);
    CHECK_INT(drydock_direct_queue(e.qp, NULL), EINVAL);
    small = ibv_create_cq(e.ctx, BLOCKS - 1, NULL, NULL, 0);
    CHECK(small != NULL);
    errno = 0;
    CHECK(!direct_qp(&e, small, BLOCKS) && errno == EINVAL); // a producer could overrun it
    errno = 0;
    CHECK(!direct_qp(&e, e.cq, 65537) && errno == EINVAL);
    errno = 0;
    CHECK(!direct_qp(&e, e.cq, 0) && errno == EINVAL);
    errno = 0;
    CHECK(!drydock_create_direct_qp(NULL, &attr) && errno == EINVAL);
    errno = 0;
    CHECK(!drydock_create_direct_qp(e.pd, NULL) && errno == EINVAL);
    CHECK_INT(ibv_destroy_cq(small), 0);
    end_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_lands_and_is_told),
        cmocka_unit_test(nothing_moves_before_the_doorbell_and_one_ring_publishes_all),
        cmocka_unit_test(a_full_ring_is_counted_in_blocks_and_refused_before_anything_is_written),
        cmocka_unit_test(a_lone_wqe_stored_whole_stands_for_the_doorbell),
        cmocka_unit_test(quiet_returns_the_first_error_and_then_that_the_queue_is_lost),
        cmocka_unit_test(two_producers_on_one_head_are_both_named),
        cmocka_unit_test(a_torn_wqe_is_named_with_its_producer_and_not_executed),
        cmocka_unit_test(a_slot_that_changes_while_the_device_works_on_it_is_named),
        cmocka_unit_test(the_library_does_not_post_to_a_queue_that_is_driven),
        cmocka_unit_test(what_cannot_be_driven_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
