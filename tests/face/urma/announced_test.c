// SPDX-License-Identifier: MIT
// What the device announces is what it takes, to the last one; and every option of a JFS and of a jetty is
// kept, told, and in effect.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

static const struct uend_options rm = {.mode = URMA_TM_RM};
static struct uend l, r;
static urma_device_cap_t caps;

// ---- limits: one object with this value, and nothing else unusual

static bool makes_jfc(urma_jfc_cfg_t cfg)
{
    urma_jfc_t *jfc = urma_create_jfc(l.ctx, &cfg);

    return jfc && urma_delete_jfc(jfc) == 0;
}

static bool makes_jfs(urma_jfs_cfg_t cfg)
{
    urma_jfs_t *jfs = urma_create_jfs(l.ctx, &cfg);

    return jfs && urma_delete_jfs(jfs) == 0;
}

static bool makes_jfr(urma_jfr_cfg_t cfg)
{
    urma_jfr_t *jfr = urma_create_jfr(l.ctx, &cfg);

    return jfr && urma_delete_jfr(jfr) == 0;
}

static bool jfc_depth(uint32_t n)
{
    return makes_jfc((urma_jfc_cfg_t){.depth = n});
}

static bool jfs_depth(uint32_t n)
{
    urma_jfs_cfg_t cfg = l.jetty->jetty_cfg.jfs_cfg;

    cfg.depth = n;
    return makes_jfs(cfg);
}

static bool jfs_sge(uint32_t n)
{
    urma_jfs_cfg_t cfg = l.jetty->jetty_cfg.jfs_cfg;

    cfg.max_sge = (uint8_t)n;
    return makes_jfs(cfg);
}

static bool jfs_rsge(uint32_t n)
{
    urma_jfs_cfg_t cfg = l.jetty->jetty_cfg.jfs_cfg;

    cfg.max_rsge = (uint8_t)n;
    return makes_jfs(cfg);
}

static bool jfs_inline(uint32_t n)
{
    urma_jfs_cfg_t cfg = l.jetty->jetty_cfg.jfs_cfg;

    cfg.max_inline_data = n;
    return makes_jfs(cfg);
}

static bool jfr_depth(uint32_t n)
{
    urma_jfr_cfg_t cfg = l.jfr->jfr_cfg;

    cfg.depth = n;
    return makes_jfr(cfg);
}

static bool jfr_sge(uint32_t n)
{
    urma_jfr_cfg_t cfg = l.jfr->jfr_cfg;

    cfg.max_sge = (uint8_t)n;
    return makes_jfr(cfg);
}

static void each_limit_is_exact(void **state)
{
    const struct {
        const char *name;
        bool (*makes)(uint32_t n);
        uint32_t least, most;
    } limits[] = {
        {"JFC depth", jfc_depth, 1, caps.max_jfc_depth},
        {"JFS depth", jfs_depth, 1, caps.max_jfs_depth},
        {"JFS SGEs", jfs_sge, 0, caps.max_jfs_sge},
        {"JFS remote SGEs", jfs_rsge, 0, caps.max_jfs_rsge},
        {"JFS inline", jfs_inline, 0, caps.max_jfs_inline_len},
        {"JFR depth", jfr_depth, 1, caps.max_jfr_depth},
        {"JFR SGEs", jfr_sge, 0, caps.max_jfr_sge},
    };

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int beyond = -1; beyond < 3; beyond++) { // below, the least, the most, above
            uint32_t n =
                beyond < 1 ? limits[i].least + (uint32_t)beyond : limits[i].most + (uint32_t)beyond - 1;
            bool expected = beyond == 0 || beyond == 1;
            if (beyond < 0 && !limits[i].least)
                continue;
            errno = 0;
            bool got = limits[i].makes(n);
            if (got != expected || (!got && errno != EINVAL))
                check_failed(__FILE__, __LINE__, "%s %u: expected %s, got %s, errno %d", limits[i].name, n,
                             expected ? "an object" : "EINVAL", got ? "one" : "none", errno);
        }
}

// ---- options: what is set before the queue is active, and what is known only then

static const struct option {
    const char *name;
    uint64_t opt;
    uint32_t len;
    uint64_t value; // to be set; 0: whatever it is
    bool live;      // known when it is active, and never set
} jfs_options[] =
    {
        {"DEPTH", URMA_JFS_DEPTH, 4, 3, false},
        {"FLAG", URMA_JFS_FLAG, 4, 0, false},
        {"TRANS_MODE", URMA_JFS_TRANS_MODE, 4, URMA_TM_RM, false},
        {"PRIORITY", URMA_JFS_PRIORITY, 1, 4, false},
        {"MAX_SGE", URMA_JFS_MAX_SGE, 1, 2, false},
        {"MAX_RSGE", URMA_JFS_MAX_RSGE, 1, 1, false},
        {"MAX_INLINE_DATA", URMA_JFS_MAX_INLINE_DATA, 4, 16, false},
        {"RNR_RETRY", URMA_JFS_RNR_RETRY, 1, 5, false},
        {"ERR_TIMEOUT", URMA_JFS_ERR_TIMEOUT, 1, 15, false},
        {"BIND_JFC", URMA_JFS_BIND_JFC, 8, 0, false},
        {"USER_CTX", URMA_JFS_USER_CTX, 8, 0x1122334455667788, false},
        {"PI_TYPE", URMA_JFS_PI_TYPE, 2, 1, false},
        {"SQE_BASE_ADDR", URMA_JFS_SQE_BASE_ADDR, 8, 0, true}, // chosen_test.c sets it
        {"ID", URMA_JFS_ID, 4, 9, false},
        {"DB_ADDR", URMA_JFS_DB_ADDR, 8, 0, true},
        {"PI", URMA_JFS_PI, 2, 0, true},
        {"CI", URMA_JFS_CI, 2, 0, true},
},
  jetty_options[] = {
      {"FLAG", URMA_JETTY_FLAG, 4, 0, false},
      {"BIND_JFR", URMA_JETTY_BIND_JFR, 8, 0, false},
      {"BIND_RX_JFC", URMA_JETTY_BIND_RX_JFC, 8, 0, false},
      {"BIND_JTG", URMA_JETTY_BIND_JTG, 8, 0, false},
      {"USER_CTX", URMA_JETTY_USER_CTX, 8, 0x8877665544332211, false},
      {"ID", URMA_JETTY_ID, 4, 9, false},
};

static urma_jfs_t *jfs; // of the two one is NULL
static urma_jetty_t *jetty;

static urma_status_t set(uint64_t opt, void *value, uint32_t len)
{
    return jfs ? urma_set_jfs_opt(jfs, opt, value, len) : urma_set_jetty_opt(jetty, opt, value, len);
}

static urma_status_t get(uint64_t opt, void *value, uint32_t len)
{
    return jfs ? urma_get_jfs_opt(jfs, opt, value, len) : urma_get_jetty_opt(jetty, opt, value, len);
}

static void wrong(const struct option *o, const char *what, uint64_t expected, uint64_t got)
{
    check_failed(__FILE__, __LINE__, "%s %s, %s: expected %#llx, got %#llx", jfs ? "JFS" : "jetty", o->name,
                 what, (unsigned long long)expected, (unsigned long long)got);
}

static void before_it_is_active(const struct option *o)
{
    uint64_t value = o->value, back = 0;
    urma_status_t status;

    if (o->live) {
        status = set(o->opt, &value, o->len);
        if (status != URMA_EINVAL)
            wrong(o, "to be set, though it is the device's", URMA_EINVAL, status);
        status = get(o->opt, &back, o->len);
        if (status != URMA_EINVAL)
            wrong(o, "before there is a ring", URMA_EINVAL, status);
        return;
    }
    if (!o->value)
        CHECK_INT(get(o->opt, &value, o->len), 0);
    status = set(o->opt, &value, o->len - 1);
    if (status != URMA_EINVAL)
        wrong(o, "a byte short", URMA_EINVAL, status);
    status = set(o->opt, &value, o->len);
    if (status)
        wrong(o, "to be set", 0, status);
    CHECK_INT(get(o->opt, &back, o->len), 0);
    if (back != value)
        wrong(o, "as it was set", value, back);
}

static void when_it_is_active(const struct option *o)
{
    uint64_t back = 0;
    urma_status_t status = get(o->opt, &back, o->len);

    if (status)
        wrong(o, "to be read", 0, status);
    if (o->value && back != o->value)
        wrong(o, "as it was set, when it is active", o->value, back);
    status = set(o->opt, &back, o->len);
    if (status != URMA_EINVAL)
        wrong(o, "to be set when it is active", URMA_EINVAL, status);
}

static urma_status_t post(struct uwr *w)
{
    urma_jfs_wr_t *bad;

    return jfs ? urma_post_jfs_wr(jfs, &w->wr, &bad) : urma_post_jetty_send_wr(jetty, &w->wr, &bad);
}

// Depth 3, two pieces, 16 bytes inline.
static void they_are_in_effect(void)
{
    struct uwr w;

    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 16);
    w.local[1] = w.local[2] = w.local[0];
    w.wr.rw.src.num_sge = 3;
    CHECK_INT(post(&w), URMA_EINVAL);
    w.wr.rw.src.num_sge = 1;
    w.wr.flag.bs.inline_flag = 1;
    w.local[0].len = 17;
    CHECK_INT(post(&w), URMA_EINVAL);
    w.local[0].len = 16;
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(post(&w), 0);
    CHECK_INT(post(&w), URMA_ENOMEM);
    for (unsigned i = 0; i < 3; i++)
        ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
}

static void each(void (*look)(const struct option *o))
{
    for (size_t i = 0; i < sizeof jfs_options / sizeof *jfs_options; i++)
        look(&jfs_options[i]);
    for (size_t i = 0; jetty && i < sizeof jetty_options / sizeof *jetty_options; i++)
        look(&jetty_options[i]);
}

static void every_option_is_kept_told_and_in_effect(void **state)
{
    urma_jetty_cfg_t cfg = l.jetty->jetty_cfg;

    (void)state;
    for (unsigned of_jetty = 0; of_jetty < 2; of_jetty++) {
        jfs = NULL;
        jetty = NULL;
        if (of_jetty)
            CHECK_INT(urma_alloc_jetty(l.ctx, &cfg, &jetty), 0);
        else
            CHECK_INT(urma_alloc_jfs(l.ctx, &cfg.jfs_cfg, &jfs), 0);
        each(before_it_is_active);
        CHECK_INT(jfs ? urma_active_jfs(jfs) : urma_active_jetty(jetty), 0);
        each(when_it_is_active);
        they_are_in_effect();
        CHECK_INT(jfs ? urma_deactive_jfs(jfs) : urma_deactive_jetty(jetty), 0);
        CHECK_INT(jfs ? urma_free_jfs(jfs) : urma_free_jetty(jetty), 0);
    }
}

static int open_both(void **state)
{
    urma_device_attr_t attr;

    (void)state;
    upair_open(&l, &r, &rm);
    CHECK_INT(urma_query_device(l.ctx->dev, &attr), 0);
    caps = attr.dev_cap;
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    upair_close(&l, &r);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_limit_is_exact),
        cmocka_unit_test(every_option_is_kept_told_and_in_effect),
    };

    setenv("DRYDOCK_MAX_CQE", "65536",
           1); // the largest of all is 64 MiB, and no arena of a sanitizer has that
    return cmocka_run_group_tests_name("urma limits and options", tests, open_both, close_both);
}
