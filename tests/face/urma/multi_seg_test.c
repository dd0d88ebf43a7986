// SPDX-License-Identifier: MIT
// Several segments under one token id: each request reaches the one whose range, rights and token value fit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "face/urma/lib/uend.h"

enum { MANY = 305, TURNS = 400 };

static struct uend l, r;
static urma_token_id_t *id;

static int open_pair(void **state)
{
    (void)state;
    upair_open(&l, &r, &(struct uend_options){.mode = URMA_TM_RM});
    id = urma_alloc_token_id_ex(r.ctx, (urma_token_id_flag_t){.bs.multi_seg = 1});
    CHECK(id != NULL);
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    CHECK_INT(urma_free_token_id(id), URMA_SUCCESS);
    upair_close(&l, &r);
    return 0;
}

static urma_target_seg_t *registered(size_t offset, size_t len, uint32_t token, uint32_t access)
{
    urma_seg_cfg_t cfg = {
        .va = (uintptr_t)r.buf + offset, .len = len, .token_id = id, .token_value = {token}};
    urma_target_seg_t *seg;

    cfg.flag.bs.token_id_valid = 1;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = access;
    seg = urma_register_seg(r.ctx, &cfg);
    CHECK(seg && seg->seg.token_id == id->token_id);
    return seg;
}

static urma_target_seg_t *imported(urma_target_seg_t *seg, uint32_t token)
{
    urma_target_seg_t *there =
        urma_import_seg(l.ctx, &seg->seg, &(urma_token_t){token}, 0, (urma_import_seg_flag_t){0});

    CHECK(there != NULL);
    return there;
}

static void ask(urma_opcode_t op, urma_target_seg_t *there, size_t offset, urma_cr_status_t status)
{
    struct uwr w;

    uend_wr(&l, &w, op, offset, offset, 8);
    w.remote[0].tseg = there;
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_SUCCESS);
    ucr_expect(l.jfc, offset, status, NULL);
}

static void a_request_reaches_the_segment_that_it_names(void **state)
{
    urma_target_seg_t *a = registered(0, 4096, 7, ALL_ACCESS), *b = registered(8192, 4096, 7, ALL_ACCESS),
                      *c = registered(16384, 4096, 9, URMA_ACCESS_READ), *at = imported(a, 7),
                      *at_c = imported(c, 9);
    urma_user_tseg_t by_itself = {.token_id = id->token_id, .token_value = {7}};
    struct uwr w;

    (void)state;
    by_itself.attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    memset(l.buf, 0x11, 32768);
    ask(URMA_OPC_WRITE, at, 8, URMA_CR_SUCCESS);
    ask(URMA_OPC_WRITE, at, 8200, URMA_CR_SUCCESS); // the id and the value are those of the other one as well
    CHECK(r.buf[8] == 0x11 && r.buf[8200] == 0x11 && r.buf[8208] == 0);
    ask(URMA_OPC_WRITE, at, 4092, URMA_CR_REM_ACCESS_ABORT_ERR);  // across an end
    ask(URMA_OPC_WRITE, at, 4096, URMA_CR_REM_ACCESS_ABORT_ERR);  // between them
    ask(URMA_OPC_WRITE, at, 16384, URMA_CR_REM_ACCESS_ABORT_ERR); // another token value
    ask(URMA_OPC_WRITE, at_c, 16384, URMA_CR_REM_ACCESS_ABORT_ERR);
    ask(URMA_OPC_READ, at_c, 16384, URMA_CR_SUCCESS);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 8216, 8); // without an import
    w.remote[0].tseg = NULL;
    w.remote[0].user_tseg = &by_itself;
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_SUCCESS);
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK_INT(r.buf[8216], 0x11);
    CHECK_INT(urma_free_token_id(id), URMA_EINVAL);
    CHECK_INT(urma_unregister_seg(a), URMA_SUCCESS);
    ask(URMA_OPC_WRITE, at, 8, URMA_CR_REM_ACCESS_ABORT_ERR);
    ask(URMA_OPC_WRITE, at, 8224, URMA_CR_SUCCESS);
    a = registered(0, 64, 7, ALL_ACCESS);
    ask(URMA_OPC_WRITE, at, 16, URMA_CR_SUCCESS);
    CHECK_INT(urma_unimport_seg(at), URMA_SUCCESS);
    CHECK_INT(urma_unimport_seg(at_c), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(c), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(b), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(a), URMA_SUCCESS);
}

static void where_two_lie_over_each_other_rights_decide(void **state)
{
    urma_target_seg_t *readable = registered(0, 8192, 7, URMA_ACCESS_READ),
                      *all = registered(0, 4096, 7, ALL_ACCESS),
                      *last = registered(0, 8192, 7, URMA_ACCESS_READ), *at = imported(all, 7);

    (void)state;
    ask(URMA_OPC_READ, at, 64, URMA_CR_SUCCESS);
    ask(URMA_OPC_WRITE, at, 64, URMA_CR_SUCCESS);
    ask(URMA_OPC_WRITE, at, 4096, URMA_CR_REM_ACCESS_ABORT_ERR);
    ask(URMA_OPC_READ, at, 4096, URMA_CR_SUCCESS);
    CHECK_INT(urma_unimport_seg(at), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(all), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(readable), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(last), URMA_SUCCESS);
}

static void an_id_has_hundreds(void **state)
{
    urma_target_seg_t *seg[MANY], *at;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        seg[i] = registered(i * 64, 32, 7, ALL_ACCESS);
    at = imported(seg[0], 7);
    for (size_t i = 0; i < MANY; i += 7) {
        ask(URMA_OPC_WRITE, at, i * 64 + 24, URMA_CR_SUCCESS);
        ask(URMA_OPC_WRITE, at, i * 64 + 32, URMA_CR_REM_ACCESS_ABORT_ERR);
    }
    CHECK_INT(urma_unimport_seg(at), URMA_SUCCESS);
    for (size_t i = 0; i < MANY; i++)
        CHECK_INT(urma_unregister_seg(seg[i * 7 % MANY]), URMA_SUCCESS); // 7 and MANY have no common divisor
}

static _Atomic int turns;

static void *come_and_go(void *unused)
{
    (void)unused;
    for (; turns < TURNS; turns++) {
        urma_target_seg_t *x = registered(8192, 64, 7, ALL_ACCESS), *y = registered(12288, 64, 7, ALL_ACCESS);

        CHECK_INT(urma_unregister_seg(x), URMA_SUCCESS);
        CHECK_INT(urma_unregister_seg(y), URMA_SUCCESS);
    }
    return NULL;
}

// Who reaches one of them does not notice that others come and go: two in turn, so that each is looked for
// anew.
static void others_come_and_go_beside_requests(void **state)
{
    urma_target_seg_t *a = registered(0, 64, 7, ALL_ACCESS), *b = registered(4096, 64, 7, ALL_ACCESS),
                      *at = imported(a, 7);
    pthread_t t;

    (void)state;
    turns = 0;
    CHECK_INT(pthread_create(&t, NULL, come_and_go, NULL), 0);
    for (int i = 0; turns < TURNS; i++)
        ask(URMA_OPC_WRITE, at, i % 2 ? 4096 : 0, URMA_CR_SUCCESS);
    pthread_join(t, NULL);
    CHECK_INT(urma_unimport_seg(at), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(a), URMA_SUCCESS);
    CHECK_INT(urma_unregister_seg(b), URMA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reaches_the_segment_that_it_names),
        cmocka_unit_test(where_two_lie_over_each_other_rights_decide),
        cmocka_unit_test(an_id_has_hundreds),
        cmocka_unit_test(others_come_and_go_beside_requests),
    };

    return cmocka_run_group_tests_name("several segments of a token id", tests, open_pair, close_pair);
}
