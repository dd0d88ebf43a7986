// SPDX-License-Identifier: MIT
// C51 and the life of objects: what is asked for is what one gets, one more is refused; what is in use
// cannot be destroyed.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_device_attr dev;

static int open_all(void **state)
{
    (void)state;
    ctx = open_device();
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    return !pd || !cq || ibv_query_device(ctx, &dev);
}

static int close_all(void **state)
{
    (void)state;
    return ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}

static struct ibv_qp_init_attr usual(enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = {3, 5, 2, 1, 7}};
}

static void returned_caps_are_the_requested_ones(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

    (void)state;
    for (unsigned t = 0; t < 3; t++) {
        struct ibv_qp_init_attr a = usual(types[t]);
        struct ibv_qp *qp = ibv_create_qp(pd, &a);
        CHECK(qp != NULL);
        CHECK_INT(a.cap.max_send_wr, 3);
        CHECK_INT(a.cap.max_recv_wr, 5);
        CHECK_INT(a.cap.max_send_sge, 2);
        CHECK_INT(a.cap.max_recv_sge, 1);
        CHECK_INT(a.cap.max_inline_data, 7);
        CHECK(qp->qp_num > 1 && qp->qp_num < 1u << 24);
        CHECK_INT(ibv_destroy_qp(qp), 0);
    }
}

static void the_announced_maximum_works_and_one_more_is_refused(void **state)
{
    (void)state;
    for (unsigned field = 0; field < 5; field++)
        for (unsigned more = 0; more < 2; more++) {
            struct ibv_qp_init_attr a = usual(IBV_QPT_RC);
            uint32_t most[5] = {(uint32_t)dev.max_qp_wr, (uint32_t)dev.max_qp_wr, (uint32_t)dev.max_sge,
                                (uint32_t)dev.max_sge, 192};
            ((uint32_t *)&a.cap)[field] = most[field] + more;
            errno = 0;
            struct ibv_qp *qp = ibv_create_qp(pd, &a);
            if (!more != (qp != NULL) || (!qp && errno != EINVAL))
                check_failed(__FILE__, __LINE__, "cap %u at %u: expected %s, got %s (errno %d)", field,
                             most[field] + more, more ? "EINVAL" : "a queue", qp ? "a queue" : "none", errno);
            if (qp)
                CHECK_INT(ibv_destroy_qp(qp), 0);
        }
}

static void cq_depth_is_exact_and_bounded(void **state)
{
    (void)state;
    struct ibv_cq *one = ibv_create_cq(ctx, 1, NULL, NULL, 0), *odd = ibv_create_cq(ctx, 77, NULL, NULL, 0);
    CHECK_INT(one->cqe, 1);
    CHECK_INT(odd->cqe, 77);
    CHECK_INT(ibv_destroy_cq(one), 0);
    CHECK_INT(ibv_destroy_cq(odd), 0);
    errno = 0;
    CHECK(!ibv_create_cq(ctx, dev.max_cqe + 1, NULL, NULL, 0));
    CHECK_INT(errno, EINVAL);
}

static void srq_attributes_are_exact(void **state)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 13, .max_sge = 3}};
    struct ibv_srq *srq = ibv_create_srq(pd, &a);
    struct ibv_srq_attr got;

    (void)state;
    CHECK(srq != NULL);
    CHECK_INT(ibv_query_srq(srq, &got), 0);
    CHECK_INT(got.max_wr, 13);
    CHECK_INT(got.max_sge, 3);
    CHECK_INT(got.srq_limit, 0);
    got.srq_limit = 13;
    CHECK_INT(ibv_modify_srq(srq, &got, IBV_SRQ_LIMIT), 0);
    got.srq_limit = 14;
    CHECK_INT(ibv_modify_srq(srq, &got, IBV_SRQ_LIMIT), EINVAL);
    CHECK_INT(ibv_query_srq(srq, &got), 0);
    CHECK_INT(got.srq_limit, 13);
    CHECK_INT(ibv_destroy_srq(srq), 0);
}

static void a_queue_with_srq_ignores_its_receive_caps(void **state)
{
    struct ibv_srq_init_attr s = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr a = usual(IBV_QPT_RC);

    (void)state;
    a.srq = ibv_create_srq(pd, &s);
    a.cap.max_recv_wr = UINT32_MAX;
    a.cap.max_recv_sge = UINT32_MAX;
    struct ibv_qp *qp = ibv_create_qp(pd, &a);
    CHECK(qp != NULL);
    CHECK_INT(a.cap.max_recv_wr, 0);
    CHECK_INT(ibv_destroy_srq(a.srq), EBUSY);
    CHECK_INT(ibv_destroy_qp(qp), 0);
    a.qp_type = IBV_QPT_UC;
    errno = 0;
    CHECK(!ibv_create_qp(pd, &a));
    CHECK_INT(errno, EINVAL);
    CHECK_INT(ibv_destroy_srq(a.srq), 0);
}

static void what_is_in_use_is_busy(void **state)
{
    struct ibv_pd *p = ibv_alloc_pd(ctx);
    struct ibv_comp_channel *chan = ibv_create_comp_channel(ctx);
    struct ibv_cq *c = ibv_create_cq(ctx, 4, NULL, chan, 0);
    struct ibv_qp_init_attr a = {.send_cq = c, .recv_cq = c, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(p, &a);

    (void)state;
    CHECK(qp != NULL);
    CHECK_INT(ibv_destroy_comp_channel(chan), EBUSY);
    CHECK_INT(ibv_destroy_cq(c), EBUSY);
    CHECK_INT(ibv_dealloc_pd(p), EBUSY);
    CHECK_INT(ibv_destroy_qp(qp), 0);
    CHECK_INT(ibv_destroy_cq(c), 0);
    CHECK_INT(ibv_destroy_comp_channel(chan), 0);
    CHECK_INT(ibv_dealloc_pd(p), 0);
}

// Each kind of object that belongs to a domain keeps it alive.
static void a_domain_is_busy_with_each_kind_of_object(void **state)
{
    static char memory[4096];
    struct ibv_pd *p = ibv_alloc_pd(ctx);
    struct ibv_srq_init_attr s = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_ah_attr av = {.is_global = 1, .port_num = 1};

    (void)state;
    struct ibv_mr *mr = ibv_reg_mr(p, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr != NULL);
    CHECK_INT(ibv_dealloc_pd(p), EBUSY);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    struct ibv_mw *mw = ibv_alloc_mw(p, IBV_MW_TYPE_1);
    CHECK(mw != NULL);
    CHECK_INT(ibv_dealloc_pd(p), EBUSY);
    CHECK_INT(ibv_dealloc_mw(mw), 0);
    struct ibv_srq *srq = ibv_create_srq(p, &s);
    CHECK(srq != NULL);
    CHECK_INT(ibv_dealloc_pd(p), EBUSY);
    CHECK_INT(ibv_destroy_srq(srq), 0);
    CHECK_INT(ibv_query_gid(ctx, 1, 0, &av.grh.dgid), 0);
    struct ibv_ah *ah = ibv_create_ah(p, &av);
    CHECK(ah != NULL);
    CHECK_INT(ibv_dealloc_pd(p), EBUSY);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    CHECK_INT(ibv_dealloc_pd(p), 0);
}

static void a_domain_given_back_through_another_context_is_enoent(void **state)
{
    struct ibv_context *other = open_device();
    struct ibv_pd *p = ibv_alloc_pd(ctx);

    (void)state;
    p->context = other;
    CHECK_INT(ibv_dealloc_pd(p), ENOENT);
    p->context = ctx;
    CHECK_INT(ibv_dealloc_pd(p), 0);
    CHECK_INT(ibv_close_device(other), 0);
}

static void objects_of_two_contexts_do_not_mix(void **state)
{
    struct ibv_context *other = open_device();
    struct ibv_cq *foreign = ibv_create_cq(other, 4, NULL, NULL, 0);
    struct ibv_comp_channel *chan = ibv_create_comp_channel(other);
    struct ibv_qp_init_attr a = usual(IBV_QPT_RC);

    (void)state;
    a.send_cq = foreign;
    errno = 0;
    CHECK(!ibv_create_qp(pd, &a));
    CHECK_INT(errno, EINVAL);
    errno = 0;
    CHECK(!ibv_create_cq(ctx, 4, NULL, chan, 0));
    CHECK_INT(errno, EINVAL);
    CHECK_INT(ibv_destroy_cq(foreign), 0);
    CHECK_INT(ibv_destroy_comp_channel(chan), 0);
    CHECK_INT(ibv_close_device(other), 0);
}

static void other_services_are_eopnotsupp(void **state)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER};

    (void)state;
    for (unsigned t = 0; t < 2; t++) {
        struct ibv_qp_init_attr a = usual(types[t]);
        errno = 0;
        CHECK(!ibv_create_qp(pd, &a));
        CHECK_INT(errno, EOPNOTSUPP);
    }
}

// The list of rights: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE (C17).
static void rights_that_contradict_are_refused(void **state)
{
    static char memory[4096];

    (void)state;
    for (int access = 0; access < 16; access++) {
        bool ok = !(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) || (access & 1);
        errno = 0;
        struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, access);
        if (ok != (mr != NULL) || (!ok && errno != EINVAL))
            check_failed(__FILE__, __LINE__, "access %#x: expected %s, got %s (errno %d)", access,
                         ok ? "a region" : "EINVAL", mr ? "a region" : "none", errno);
        if (mr) {
            CHECK(mr->lkey != mr->rkey); // C18
            CHECK_INT(ibv_dereg_mr(mr), 0);
        }
    }
}

static void the_number_of_address_handles_is_exact(void **state)
{
    struct ibv_ah_attr av = {.is_global = 1, .port_num = 1};
    struct ibv_ah **ah = calloc((size_t)dev.max_ah, sizeof *ah);
    int n = 0;

    (void)state;
    CHECK_INT(ibv_query_gid(ctx, 1, 0, &av.grh.dgid), 0);
    while (n < dev.max_ah && (ah[n] = ibv_create_ah(pd, &av)))
        n++;
    CHECK_INT(n, dev.max_ah);
    errno = 0;
    CHECK(!ibv_create_ah(pd, &av));
    CHECK_INT(errno, ENOMEM);
    while (n--)
        CHECK_INT(ibv_destroy_ah(ah[n]), 0);
    free(ah);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returned_caps_are_the_requested_ones),
        cmocka_unit_test(the_announced_maximum_works_and_one_more_is_refused),
        cmocka_unit_test(cq_depth_is_exact_and_bounded),
        cmocka_unit_test(srq_attributes_are_exact),
        cmocka_unit_test(a_queue_with_srq_ignores_its_receive_caps),
        cmocka_unit_test(what_is_in_use_is_busy),
        cmocka_unit_test(a_domain_is_busy_with_each_kind_of_object),
        cmocka_unit_test(a_domain_given_back_through_another_context_is_enoent),
        cmocka_unit_test(objects_of_two_contexts_do_not_mix),
        cmocka_unit_test(other_services_are_eopnotsupp),
        cmocka_unit_test(rights_that_contradict_are_refused),
        cmocka_unit_test(the_number_of_address_handles_is_exact),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
