// SPDX-License-Identifier: MIT
// Memory that is not simply registered: changed in place, null, on demand, of the device, of a domain with
// allocators, imported.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <unistd.h>

#include "face/lib/ends.h"

static void transfer(struct end *l, enum ibv_wr_opcode op, uint64_t raddr, uint32_t rkey,
                     enum ibv_wc_status s)
{
    struct ibv_sge sge = end_sge(l, 0, 64);
    struct ibv_send_wr wr = send_wr(1, op, &sge, raddr, rkey);

    CHECK_INT(post(l, &wr), 0);
    expect_wc(l->cq, 1, s, NULL);
}

// Relaxed order is a licence that nobody must use; others of the optional range are not ours to know.
static void a_region_with_optional_rights_is_as_any(void **state)
{
    static const unsigned flags[] = {IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_HUGETLB,
                                     IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_ON_DEMAND,
                                     IBV_ACCESS_OPTIONAL_RANGE};
    enum { IOVA = 0x1000 };
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct ibv_mr *mr = ibv_reg_mr_iova2(r.pd, r.buf, 64, IOVA, FULL_ACCESS | flags[i]);

        CHECK(mr != NULL);
        memset(l.buf, 0x41 + (int)i, 64);
        transfer(&l, IBV_WR_RDMA_WRITE, IOVA, mr->rkey, IBV_WC_SUCCESS);
        CHECK(!memcmp(l.buf, r.buf, 64));
        CHECK_INT(ibv_dereg_mr(mr), 0);
    }
    pair_close(&l, &r);
}

static void a_region_moves_under_its_keys(void **state)
{
    static char elsewhere[4096];
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    uint32_t lkey = r.mr->lkey, rkey = r.mr->rkey;
    memset(l.buf, 0x31, 64);
    CHECK_INT(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere, sizeof elsewhere, 0), 0);
    CHECK(r.mr->addr == elsewhere && r.mr->length == sizeof elsewhere);
    CHECK(r.mr->lkey == lkey && r.mr->rkey == rkey);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)elsewhere, rkey, IBV_WC_SUCCESS);
    CHECK_INT(elsewhere[63], 0x31);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)r.buf, rkey, IBV_WC_REM_ACCESS_ERR);
    pair_close(&l, &r);
}

static void a_region_loses_a_right(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    CHECK_INT(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE),
              IBV_REREG_MR_ERR_CMD);
    CHECK_INT(errno, EINVAL);
    transfer(&l, IBV_WR_RDMA_READ, (uintptr_t)r.buf, r.mr->rkey, IBV_WC_SUCCESS);
    CHECK_INT(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE),
              0);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)r.buf, r.mr->rkey, IBV_WC_SUCCESS);
    transfer(&l, IBV_WR_RDMA_READ, (uintptr_t)r.buf, r.mr->rkey, IBV_WC_REM_ACCESS_ERR);
    pair_close(&l, &r);
}

static void a_region_goes_to_another_domain(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_pd *other = ibv_alloc_pd(r.ctx), *first = r.pd;
    CHECK_INT(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
    CHECK(r.mr->pd == other);
    CHECK_INT(ibv_dealloc_pd(other), EBUSY);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)r.buf, r.mr->rkey, IBV_WC_REM_ACCESS_ERR);
    CHECK_INT(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_PD, first, NULL, 0, 0), 0);
    CHECK_INT(ibv_dealloc_pd(other), 0);
    pair_close(&l, &r);
}

static void the_null_region_reads_zeros_and_loses_what_is_written(void **state)
{
    struct end l, r;
    struct ibv_wc wc;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_mr *from = ibv_alloc_null_mr(l.pd), *into = ibv_alloc_null_mr(r.pd);
    CHECK(from && into);
    memset(r.buf, 0x7f, 4096);
    struct ibv_sge zeros = {.addr = 0x1234, .length = 1000, .lkey = from->lkey}, mine = end_sge(&l, 0, 300);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &zeros, (uintptr_t)r.buf, r.mr->rkey);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(r.buf[0] == 0 && r.buf[999] == 0 && r.buf[1000] == 0x7f);
    struct ibv_sge lost[2] = {{.addr = 0, .length = 100, .lkey = into->lkey}, end_sge(&r, 2000, 200)};
    struct ibv_recv_wr *bad, recv = {.wr_id = 5, .sg_list = lost, .num_sge = 2};
    CHECK_INT(ibv_post_recv(r.qp, &recv, &bad), 0);
    for (int i = 0; i < 300; i++)
        l.buf[i] = (char)i;
    wr = send_wr(2, IBV_WR_SEND, &mine, 0, 0);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    expect_wc(r.rcq, 5, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 300);
    CHECK(!memcmp(r.buf + 2000, l.buf + 100, 200));
    transfer(&l, IBV_WR_RDMA_WRITE, 0x1000, into->rkey,
             IBV_WC_REM_ACCESS_ERR); // its remote key opens nothing
    CHECK_INT(ibv_dereg_mr(from), 0);
    CHECK_INT(ibv_dereg_mr(into), 0);
    pair_close(&l, &r);
}

static void an_implicit_region_is_all_of_the_address_space(void **state)
{
    struct ibv_device_attr_ex caps;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    CHECK_INT(ibv_query_device_ex(l.ctx, NULL, &caps), 0);
    CHECK(caps.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
    struct ibv_mr *all = ibv_reg_mr(r.pd, NULL, SIZE_MAX, FULL_ACCESS | IBV_ACCESS_ON_DEMAND);
    CHECK(all != NULL);
    char *fresh = malloc(4096);
    memset(l.buf, 0x44, 64);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)fresh, all->rkey, IBV_WC_SUCCESS);
    CHECK_INT(fresh[63], 0x44);
    struct ibv_sge advice = {.addr = (uintptr_t)fresh, .length = 4096, .lkey = all->lkey};
    CHECK_INT(ibv_advise_mr(r.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &advice, 1), 0);
    advice.lkey = all->rkey;
    CHECK_INT(ibv_advise_mr(r.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &advice, 1), ENOENT);
    free(fresh);
    CHECK_INT(ibv_dereg_mr(all), 0);
    pair_close(&l, &r);
}

static void device_memory_is_copied_to_and_registered(void **state)
{
    struct ibv_alloc_dm_attr a = {.length = 8192};
    struct end l, r;
    char got[64];

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_dm *dm = ibv_alloc_dm(r.ctx, &a);
    CHECK(dm != NULL);
    CHECK(!ibv_reg_dm_mr(r.pd, dm, 0, 4096, FULL_ACCESS));                         // zero-based it must be
    CHECK(!ibv_reg_dm_mr(l.pd, dm, 0, 4096, FULL_ACCESS | IBV_ACCESS_ZERO_BASED)); // another context's
    CHECK_INT(errno, EINVAL);
    struct ibv_mr *mr = ibv_reg_dm_mr(r.pd, dm, 4096, 4096, FULL_ACCESS | IBV_ACCESS_ZERO_BASED);
    CHECK(mr != NULL);
    memset(l.buf, 0x2a, 64);
    transfer(&l, IBV_WR_RDMA_WRITE, 100, mr->rkey, IBV_WC_SUCCESS);
    CHECK_INT(ibv_memcpy_from_dm(got, dm, 4096 + 100, 64), 0);
    CHECK(!memcmp(got, l.buf, 64));
    memset(got, 0x2b, 64);
    CHECK_INT(ibv_memcpy_to_dm(dm, 4096, got, 64), 0);
    transfer(&l, IBV_WR_RDMA_READ, 0, mr->rkey, IBV_WC_SUCCESS);
    CHECK(!memcmp(l.buf, got, 64));
    CHECK_INT(ibv_memcpy_to_dm(dm, 8192 - 60, got, 64), EINVAL);
    CHECK_INT(ibv_memcpy_to_dm(dm, 4097, got, 64), EINVAL); // words of four bytes
    CHECK_INT(ibv_memcpy_from_dm(got, dm, 4096, 62), EINVAL);
    CHECK_INT(ibv_free_dm(dm), EBUSY);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    CHECK_INT(ibv_free_dm(dm), 0);
    pair_close(&l, &r);
}

static unsigned allocated, freed;

static void *take(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
    (void)pd;
    (void)alignment;
    (void)type;
    if (context == (void *)1)
        return IBV_ALLOCATOR_USE_DEFAULT;
    if (context == (void *)2)
        return NULL;
    allocated++;
    return malloc(size);
}

static void give(struct ibv_pd *pd, void *context, void *p, uint64_t type)
{
    (void)pd;
    (void)context;
    (void)type;
    freed++;
    free(p);
}

static void a_parent_domain_brings_its_allocators(void **state)
{
    struct end e;

    (void)state;
    end_open(&e, NULL);
    for (uintptr_t context = 0; context < 3; context++) {
        struct ibv_parent_domain_init_attr a = {.pd = e.pd,
                                                .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                                             IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                                                .alloc = take,
                                                .free = give,
                                                .pd_context = (void *)context};
        struct ibv_qp_init_attr q = {
            .send_cq = e.cq, .recv_cq = e.cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
        struct ibv_pd *parent = ibv_alloc_parent_domain(e.ctx, &a);
        CHECK(parent != NULL);
        allocated = freed = 0;
        struct ibv_qp *qp = ibv_create_qp(parent, &q);
        CHECK((qp != NULL) == (context != 2));
        if (qp)
            CHECK_INT(ibv_destroy_qp(qp), 0);
        CHECK_INT(allocated, context == 0);
        CHECK_INT(freed, context == 0);
        CHECK_INT(ibv_dealloc_pd(parent), 0);
    }
    end_close(&e);
}

static void a_context_is_imported_by_its_descriptor(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    int fd = dup(r.ctx->cmd_fd);
    struct ibv_context *again = ibv_import_device(fd);
    CHECK(again && again != r.ctx);
    struct ibv_pd *pd = ibv_import_pd(again, r.pd->handle);
    CHECK(pd != NULL);
    struct ibv_mr *mr = ibv_import_mr(pd, r.mr->handle), *own = ibv_reg_mr(pd, l.buf, 64, FULL_ACCESS);
    CHECK(mr && own);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)r.buf, mr->rkey, IBV_WC_SUCCESS);
    transfer(&l, IBV_WR_RDMA_WRITE, (uintptr_t)l.buf, own->rkey, IBV_WC_SUCCESS); // it is the same domain
    CHECK_INT(ibv_dereg_mr(own), 0);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    CHECK_INT(ibv_close_device(again), 0);
    errno = 0;
    CHECK(!ibv_import_device(0));
    CHECK_INT(errno, EINVAL);
    close(fd);
    pair_close(&l, &r);
}

// What one handle writes the other reads; a region made through the import outlives it; the maker's comes
// last.
static void device_memory_is_imported_by_its_handle(void **state)
{
    struct ibv_alloc_dm_attr a = {.length = 8192};
    char out[64], in[64] = {0};
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    struct ibv_dm *dm = ibv_alloc_dm(l.ctx, &a), *other = ibv_alloc_dm(l.ctx, &a);
    CHECK(dm && other && dm->handle != other->handle);
    struct ibv_dm *again = ibv_import_dm(r.ctx, dm->handle);
    CHECK(again && again->context == r.ctx);
    memset(out, 0x5c, sizeof out);
    CHECK_INT(ibv_memcpy_to_dm(dm, 64, out, sizeof out), 0);
    CHECK_INT(ibv_memcpy_from_dm(in, again, 64, sizeof in), 0);
    CHECK(!memcmp(in, out, sizeof in));
    struct ibv_mr *mr = ibv_reg_dm_mr(r.pd, again, 0, 4096, FULL_ACCESS | IBV_ACCESS_ZERO_BASED);
    CHECK(mr != NULL);
    CHECK_INT(ibv_free_dm(again), EINVAL);
    CHECK_INT(ibv_free_dm(dm), EBUSY);
    ibv_unimport_dm(again);
    CHECK_INT(ibv_free_dm(dm), EBUSY); // the region
    transfer(&l, IBV_WR_RDMA_READ, 64, mr->rkey, IBV_WC_SUCCESS);
    CHECK(!memcmp(l.buf, out, sizeof out));
    CHECK_INT(ibv_dereg_mr(mr), 0);
    uint32_t handle = dm->handle;
    CHECK_INT(ibv_free_dm(dm), 0);
    CHECK(!ibv_import_dm(r.ctx, handle));
    CHECK_INT(ibv_free_dm(other), 0);
    pair_close(&l, &r);
}

static void there_are_no_connection_options_beyond_the_vendor(void **state)
{
    struct ibv_ece ece = {.options = 1};
    struct end e;

    (void)state;
    end_open(&e, NULL);
    CHECK_INT(ibv_query_ece(e.qp, &ece), 0);
    CHECK_INT(ece.options, 0);
    CHECK_INT(ibv_set_ece(e.qp, &ece), 0);
    ece.options = 1;
    CHECK_INT(ibv_set_ece(e.qp, &ece), EOPNOTSUPP);
    end_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_with_optional_rights_is_as_any),
        cmocka_unit_test(a_region_moves_under_its_keys),
        cmocka_unit_test(a_region_loses_a_right),
        cmocka_unit_test(a_region_goes_to_another_domain),
        cmocka_unit_test(the_null_region_reads_zeros_and_loses_what_is_written),
        cmocka_unit_test(an_implicit_region_is_all_of_the_address_space),
        cmocka_unit_test(device_memory_is_copied_to_and_registered),
        cmocka_unit_test(a_parent_domain_brings_its_allocators),
        cmocka_unit_test(a_context_is_imported_by_its_descriptor),
        cmocka_unit_test(device_memory_is_imported_by_its_handle),
        cmocka_unit_test(there_are_no_connection_options_beyond_the_vendor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
