// SPDX-License-Identifier: MIT
// urma_user_ctl: what each number reads, writes and answers, and that the queues it makes are queues.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <ub/umdk/urma/udma/udma_u_ctl.h>

#include "face/urma/lib/uend.h"

static const struct uend_options rm = {.mode = URMA_TM_RM};
static struct uend l, r;

static urma_status_t ctl(uint32_t opcode, const void *in, uint32_t in_len, void *out, uint32_t out_len)
{
    urma_user_ctl_in_t i = {.addr = (uintptr_t)in, .len = in_len, .opcode = opcode};
    urma_user_ctl_out_t o = {.addr = (uintptr_t)out, .len = out_len};

    return urma_user_ctl(l.ctx, &i, &o);
}

static struct udma_u_jfs_cfg_ex jfs_cfg(void)
{
    urma_jfs_cfg_t base = l.jetty->jetty_cfg.jfs_cfg;

    return (struct udma_u_jfs_cfg_ex){
        .base_cfg = base, .jetty_type = UDMA_U_NORMAL_JETTY_TYPE, .pi_type = true, .sqebb_num = 8};
}

static struct udma_u_jetty_cfg_ex jetty_cfg(void)
{
    return (struct udma_u_jetty_cfg_ex){
        .base_cfg = l.jetty->jetty_cfg, .jetty_type = UDMA_U_NORMAL_JETTY_TYPE, .sqebb_num = 4};
}

// ---- a wrong buffer is refused before anything is done; what needs a chip, whatever the buffers

#define PTR sizeof(void *)

static const struct {
    const char *name;
    uint32_t opcode;
    size_t in, out;
    bool done; // else URMA_ENOPERM
} numbers[] = {
    {"CREATE_JFR_EX", UDMA_U_USER_CTL_CREATE_JFR_EX, sizeof(struct udma_u_jfr_cfg_ex), PTR, true},
    {"DELETE_JFR_EX", UDMA_U_USER_CTL_DELETE_JFR_EX, PTR, 0, true},
    {"CREATE_JFS_EX", UDMA_U_USER_CTL_CREATE_JFS_EX, sizeof(struct udma_u_jfs_cfg_ex),
     sizeof(struct udma_u_jfs_info), true},
    {"DELETE_JFS_EX", UDMA_U_USER_CTL_DELETE_JFS_EX, PTR, 0, true},
    {"CREATE_JFC_EX", UDMA_U_USER_CTL_CREATE_JFC_EX, sizeof(struct udma_u_jfc_cfg_ex), PTR, true},
    {"DELETE_JFC_EX", UDMA_U_USER_CTL_DELETE_JFC_EX, PTR, 0, true},
    {"CREATE_JETTY_EX", UDMA_U_USER_CTL_CREATE_JETTY_EX, sizeof(struct udma_u_jetty_cfg_ex),
     sizeof(struct udma_u_jetty_info), true},
    {"DELETE_JETTY_EX", UDMA_U_USER_CTL_DELETE_JETTY_EX, PTR, 0, true},
    {"POST_WR", UDMA_U_USER_CTL_POST_WR, sizeof(struct udma_u_wr_ex), sizeof(struct udma_u_post_info), true},
    {"UPDATE_CI", UDMA_U_USER_CTL_UPDATE_CI, sizeof(struct udma_u_update_ci), 0, true},
    {"QUERY_UE_INFO", UDMA_U_USER_CTL_QUERY_UE_INFO, 0, sizeof(struct udma_u_ue_info), true},
    {"QUERY_TP_SPORT", UDMA_U_USER_CTL_QUERY_TP_SPORT, sizeof(struct udma_u_tp_sport_in),
     sizeof(struct udma_u_tp_sport_out), false},
    {"QUERY_CQE_AUX_INFO", UDMA_U_USER_CTL_QUERY_CQE_AUX_INFO, sizeof(struct udma_u_cqe_info_in),
     sizeof(struct udma_u_cqe_aux_info_out), false},
    {"QUERY_AE_AUX_INFO", UDMA_U_USER_CTL_QUERY_AE_AUX_INFO, sizeof(struct udma_u_ae_info_in),
     sizeof(struct udma_u_ae_aux_info_out), false},
    {"CREATE_LOCK_BUFFER_JETTY_EX", UDMA_U_USER_CTL_CREATE_LOCK_BUFFER_JETTY_EX,
     sizeof(struct udma_u_lock_jetty_cfg), sizeof(struct udma_u_jetty_info), false},
    {"DELETE_LOCK_BUFFER_JETTY_EX", UDMA_U_USER_CTL_DELETE_LOCK_BUFFER_JETTY_EX, PTR, 0, false},
    {"CREATE_CCU_JFC_EX", UDMA_U_USER_CTL_CREATE_CCU_JFC_EX, sizeof(struct udma_u_lock_jfc_cfg), PTR, false},
    {"DELETE_CCU_JFC_EX", UDMA_U_USER_CTL_DELETE_CCU_JFC_EX, PTR, 0, false},
};

static void each_number_looks_at_its_buffers(void **state)
{
    static char in[1024], out[1024], untouched[1024];

    (void)state;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        for (unsigned wrong = 0; wrong < 4; wrong++) { // no input, a short one; no output, a short one
            bool of_input = wrong < 2;
            if (of_input ? !numbers[n].in : !numbers[n].out)
                continue;
            memset(out, 0x5a, sizeof out);
            memset(untouched, 0x5a, sizeof untouched);
            urma_status_t expected = numbers[n].done ? URMA_FAIL : URMA_ENOPERM,
                          got = ctl(numbers[n].opcode, wrong == 0 ? NULL : in,
                                    (uint32_t)numbers[n].in - (wrong == 1), wrong == 2 ? NULL : out,
                                    (uint32_t)numbers[n].out - (wrong == 3));
            if (got != expected || memcmp(out, untouched, sizeof out))
                check_failed(__FILE__, __LINE__, "%s, wrong buffer %u: expected %d, got %d", numbers[n].name,
                             wrong, expected, got);
        }
}

// ---- queues that only a chip has, or in memory of the caller's

static void a_queue_of_a_chip_or_of_doorbells_of_the_callers_is_refused(void **state)
{
    struct udma_u_jetty_cfg_ex jetty;
    struct udma_u_jfs_cfg_ex jfs;
    struct udma_u_jfc_cfg_ex jfc = {.base_cfg = {.depth = 8}};
    struct udma_u_jfr_cfg_ex jfr = {.base_cfg = l.jfr->jfr_cfg};
    struct udma_u_jetty_info made_jetty;
    struct udma_u_jfs_info made_jfs;
    void *made;

    (void)state;
    for (unsigned n = 0; n < 4;
         n++) { // the kind, doorbell or receives, nothing wrong but the ring, the depth
        jfs = jfs_cfg();
        jfs.jetty_type = n == 0 ? UDMA_U_CCU_JETTY_TYPE : jfs.jetty_type;
        jfs.cstm_cfg.flag.bs.db_cstm = n == 1;
        jfs.cstm_cfg.flag.bs.sq_cstm = n == 2;
        jfs.sqebb_num = n == 3 ? 1u << 30 : jfs.sqebb_num;
        CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JFS_EX, &jfs, sizeof jfs, &made_jfs, sizeof made_jfs),
                  n >= 2 ? URMA_FAIL : URMA_ENOPERM);
        jetty = jetty_cfg();
        jetty.jetty_type = n == 0 ? UDMA_U_CACHE_LOCK_DWQE_JETTY_TYPE : jetty.jetty_type;
        jetty.jfr_cstm.flag.bs.rq_cstm = n == 1;
        jetty.jfs_cstm.flag.bs.sq_cstm = n == 2;
        jetty.sqebb_num = n == 3 ? 1u << 30 : jetty.sqebb_num;
        CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JETTY_EX, &jetty, sizeof jetty, &made_jetty, sizeof made_jetty),
                  n >= 2 ? URMA_FAIL : URMA_ENOPERM);
    }
    for (int mode = UDMA_U_CCU_JFC_TYPE; mode <= UDMA_U_LOCK_CCU_JFC_TYPE; mode++) {
        jfc.jfc_mode = (enum udma_u_jfc_type)mode;
        CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JFC_EX, &jfc, sizeof jfc, &made, sizeof made), URMA_ENOPERM);
    }
    jfr.cstm_cfg.flag.bs.swdb_cstm = 1;
    CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JFR_EX, &jfr, sizeof jfr, &made, sizeof made), URMA_ENOPERM);
    void *none = NULL;
    for (uint32_t op = UDMA_U_USER_CTL_DELETE_JFR_EX; op <= UDMA_U_USER_CTL_DELETE_JETTY_EX; op += 2)
        CHECK_INT(ctl(op, &none, sizeof none, NULL, 0), URMA_FAIL);
}

// ---- the queues of these calls do what those of the usual ones do

static void update_ci_follows_what_was_polled(struct udma_u_update_ci u, urma_jfc_t *jfc, uint64_t id)
{
    urma_status_t before = ctl(UDMA_U_USER_CTL_UPDATE_CI, &u, sizeof u, NULL, 0);

    CHECK_INT(before, URMA_FAIL);
    ucr_expect(jfc, id, URMA_CR_SUCCESS, NULL);
    CHECK_INT(ctl(UDMA_U_USER_CTL_UPDATE_CI, &u, sizeof u, NULL, 0), 0);
    u.ci++;
    CHECK_INT(ctl(UDMA_U_USER_CTL_UPDATE_CI, &u, sizeof u, NULL, 0), 0); // nothing is there
}

static void the_queues_that_it_makes_are_queues(void **state)
{
    struct udma_u_jfc_cfg_ex jfc_cfg = {.base_cfg = {.depth = 32}, .jfc_mode = UDMA_U_STARS_JFC_TYPE};
    struct udma_u_jfr_cfg_ex jfr_cfg = {.base_cfg = l.jfr->jfr_cfg};
    struct udma_u_jfs_cfg_ex sc = jfs_cfg();
    struct udma_u_jetty_cfg_ex jc = jetty_cfg();
    struct udma_u_jetty_info jetty;
    struct udma_u_jfs_info jfs;
    urma_jfs_wr_t *bad;
    urma_jfc_t *jfc;
    urma_jfr_t *jfr;
    uint64_t doorbell;
    uint16_t pi_type, pi;
    struct uwr w;

    (void)state;
    CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JFC_EX, &jfc_cfg, sizeof jfc_cfg, &jfc, sizeof jfc), 0);
    jfr_cfg.base_cfg.jfc = jfc;
    CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JFR_EX, &jfr_cfg, sizeof jfr_cfg, &jfr, sizeof jfr), 0);
    sc.base_cfg.jfc = jfc;
    CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JFS_EX, &sc, sizeof sc, &jfs, sizeof jfs), 0);
    jc.base_cfg.jfs_cfg.jfc = jfc;
    jc.base_cfg.shared.jfr = jfr;
    jc.base_cfg.shared.jfc = NULL;
    CHECK_INT(ctl(UDMA_U_USER_CTL_CREATE_JETTY_EX, &jc, sizeof jc, &jetty, sizeof jetty), 0);

    CHECK_INT(urma_get_jfs_opt(jfs.jfs, URMA_JFS_DB_ADDR, &doorbell, 8), 0);
    CHECK(jfs.db_addr == (void *)(uintptr_t)doorbell);
    CHECK_INT(urma_get_jfs_opt(jfs.jfs, URMA_JFS_PI_TYPE, &pi_type, 2), 0);
    CHECK_INT(pi_type, 1);
    CHECK_INT(jfs.jfs->jfs_cfg.depth, 8);
    CHECK_INT(urma_get_jetty_opt(jetty.jetty, URMA_JFS_DB_ADDR, &doorbell, 8), 0);
    CHECK(jetty.db_addr == (void *)(uintptr_t)doorbell);
    CHECK_INT(jetty.jetty->jetty_cfg.jfs_cfg.depth, 4);

    for (unsigned n = 0; n < 2; n++) {
        uend_wr(&l, &w, URMA_OPC_WRITE, n, n * 8, 8);
        memcpy(l.buf + n * 8, n ? "of jetty" : "of a JFS", 8);
        if (n)
            CHECK_INT(urma_get_jetty_opt(jetty.jetty, URMA_JFS_PI, &pi, 2), 0);
        else
            CHECK_INT(urma_get_jfs_opt(jfs.jfs, URMA_JFS_PI, &pi, 2), 0);
        CHECK_INT(n ? urma_post_jetty_send_wr(jetty.jetty, &w.wr, &bad)
                    : urma_post_jfs_wr(jfs.jfs, &w.wr, &bad),
                  0);
        update_ci_follows_what_was_polled(
            (struct udma_u_update_ci){.ci = pi, .is_jetty = n, .jfs = jfs.jfs, .jetty = jetty.jetty}, jfc, n);
    }
    CHECK(!memcmp(r.buf, "of a JFSof jetty", 16));
    CHECK_INT(ctl(UDMA_U_USER_CTL_DELETE_JFR_EX, &jfr, sizeof jfr, NULL, 0), URMA_FAIL); // the jetty's
    CHECK_INT(ctl(UDMA_U_USER_CTL_DELETE_JETTY_EX, &jetty.jetty, PTR, NULL, 0), 0);
    CHECK_INT(ctl(UDMA_U_USER_CTL_DELETE_JFS_EX, &jfs.jfs, PTR, NULL, 0), 0);
    CHECK_INT(ctl(UDMA_U_USER_CTL_DELETE_JFR_EX, &jfr, PTR, NULL, 0), 0);
    CHECK_INT(ctl(UDMA_U_USER_CTL_DELETE_JFC_EX, &jfc, PTR, NULL, 0), 0);
}

static void the_device_has_a_number_on_its_host(void **state)
{
    struct udma_u_ue_info mine = {.chip_id = 9, .die_id = 9};

    (void)state;
    CHECK_INT(ctl(UDMA_U_USER_CTL_QUERY_UE_INFO, NULL, 0, &mine, sizeof mine), 0);
    CHECK(mine.ue_id && !mine.chip_id && !mine.die_id);
}

static int open_both(void **state)
{
    (void)state;
    upair_open(&l, &r, &rm);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    upair_close(&l, &r); // and nothing that the calls made holds the context
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_looks_at_its_buffers),
        cmocka_unit_test(a_queue_of_a_chip_or_of_doorbells_of_the_callers_is_refused),
        cmocka_unit_test(the_queues_that_it_makes_are_queues),
        cmocka_unit_test(the_device_has_a_number_on_its_host),
    };

    return cmocka_run_group_tests_name("urma user_ctl", tests, open_both, close_both);
}
