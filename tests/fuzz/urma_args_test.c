// SPDX-License-Identifier: MIT
// link: urma
// timeout: 60
// Calls of liburma with arguments out of nothing: NULL, zeros, ones and random bytes in every structure.
// Each round is a process of its own that must end by itself: no signal, no hang, and the library answers a
// right call afterwards. What only a program that breaks the guide can pass (a dangling object) is left out:
// pointers are NULL or lead to enough memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ub/umdk/urma/urma_api.h>
#include <ub/umdk/urma/urma_perf.h>

#include "fuzz/lib/fuzz.h"

static void creations(urma_context_t *ctx, urma_jfc_t *jfc, urma_jfr_t *jfr)
{
    urma_jfc_cfg_t c = {.depth = (uint32_t)chance() % 5000, .flag.value = (uint32_t)chance() % 16};
    urma_jfs_cfg_t s = {.depth = (uint32_t)chance() % 5000, .flag.value = (uint32_t)chance()};
    urma_jfr_cfg_t r = {.depth = (uint32_t)chance() % 5000, .flag.value = (uint32_t)chance()};
    urma_jetty_cfg_t j = {.flag.value = (uint32_t)chance() & 7};
    urma_seg_cfg_t g = {.len = chance() >> chance() % 64, .flag.value = (uint32_t)chance()};
    static char memory[65536];

    s.trans_mode = r.trans_mode = (urma_transport_mode_t)(chance() % 9);
    s.max_sge = (uint8_t)chance();
    s.max_rsge = (uint8_t)chance();
    s.max_inline_data = (uint32_t)(chance() >> chance() % 64);
    s.priority = (uint8_t)chance();
    s.rnr_retry = (uint8_t)chance();
    s.err_timeout = (uint8_t)chance();
    s.jfc = r.jfc = chance() % 4 ? jfc : NULL;
    r.max_sge = (uint8_t)chance();
    r.min_rnr_timer = (uint8_t)chance();
    j.jfs_cfg = s;
    j.shared.jfr = chance() % 4 ? jfr : NULL;
    g.va = chance() % 4 ? (uintptr_t)memory : 0;
    g.len = g.len > sizeof(memory) ? sizeof(memory) : g.len;
    urma_create_jfc(ctx, &c);
    urma_create_jfs(ctx, &s);
    urma_create_jfr(ctx, &r);
    urma_create_jetty(ctx, &j);
    urma_register_seg(ctx, &g);
}

static void imports(urma_context_t *ctx)
{
    urma_token_t token = {(uint32_t)chance()};
    urma_rjetty_t *rjetty = anything();
    urma_rjfr_t *rjfr = anything();
    urma_seg_t *seg = anything();

    // An EID of nobody is looked for, which takes its time: not more than one a round.
    if (!rjetty || chance() % 8 == 0)
        urma_import_jetty(ctx, rjetty, chance() % 2 ? &token : NULL);
    if (!rjfr)
        urma_import_jfr(ctx, rjfr, chance() % 2 ? &token : NULL);
    urma_import_seg(ctx, seg, chance() % 2 ? &token : NULL, chance(),
                    (urma_import_seg_flag_t){.value = (uint32_t)chance()});
}

static void requests(urma_jfs_t *jfs, urma_jetty_t *jetty, urma_jfr_t *jfr, urma_target_seg_t *seg)
{
    urma_sge_t sge[4];
    urma_jfs_wr_t wr = {.opcode = (urma_opcode_t)(chance() % 140), .flag.value = (uint32_t)chance() & 0x3ff};
    urma_jfr_wr_t recv = {.src = {.sge = sge, .num_sge = (uint32_t)chance() % 4}};
    urma_jfs_wr_t *bad;
    urma_jfr_wr_t *bad_recv;

    for (int i = 0; i < 4; i++)
        sge[i] = (urma_sge_t){.addr = seg->seg.ubva.va + chance() % 4096,
                              .len = (uint32_t)chance() % 4096,
                              .tseg = chance() % 4 ? seg : NULL};
    // Every union arm begins with two piece lists or two pieces: both shapes are given valid memory.
    if (wr.opcode >= URMA_OPC_CAS && wr.opcode < URMA_OPC_SEND) {
        wr.cas.dst = &sge[0];
        wr.cas.src = &sge[1];
    } else {
        wr.rw.src = (urma_sg_t){.sge = sge, .num_sge = (uint32_t)chance() % 5};
        if (wr.opcode < URMA_OPC_SEND)
            wr.rw.dst = (urma_sg_t){.sge = sge, .num_sge = (uint32_t)chance() % 5};
    }
    urma_post_jfs_wr(jfs, &wr, &bad);
    urma_post_jetty_send_wr(jetty, &wr, &bad);
    urma_post_jfr_wr(jfr, &recv, &bad_recv);
}

static void plain_arguments(urma_context_t *ctx, urma_jfc_t *jfc)
{
    char text[64];
    urma_cr_t cr[4];
    uint32_t n = 0;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(chance() % 96 + 32);
    text[chance() % sizeof(text)] = '\0';
    text[sizeof(text) - 1] = '\0';
    urma_get_device_by_name(text);
    urma_str_to_eid(text, anything());
    urma_query_device(NULL, anything());
    urma_get_eid_by_ip(ctx, anything(), anything());
    urma_get_ip_by_eid(ctx, anything(), anything());
    urma_get_smac(ctx, anything());
    urma_get_dmac(ctx, anything(), anything());
    urma_modify_jfc(jfc, anything());
    urma_poll_jfc(jfc, (int)(chance() % 6) - 1, chance() % 4 ? cr : NULL);
    urma_set_context_opt(ctx, (urma_opt_name_t)chance(), anything(), chance());
    urma_get_jfc_opt(jfc, chance() % 0x4000, anything(), (uint32_t)chance() % 64);
    urma_set_jfc_opt(jfc, chance() % 0x4000, anything(), (uint32_t)chance() % 64);
    urma_get_perf_info(anything(), chance() % 2 ? &n : NULL);
    urma_log_set_level((urma_vlog_level_t)(chance() % 64));
    urma_log_set_thread_tag(text);
}

static int round_of(void)
{
    urma_device_t *dev;
    urma_context_t *ctx;
    urma_jfc_t *jfc;
    urma_jfr_t *jfr;
    urma_jfs_t *jfs;
    urma_jetty_t *jetty;
    urma_target_seg_t *seg;
    urma_cr_t cr;
    int n;
    static char memory[16384];

    if (urma_init(NULL) != URMA_SUCCESS || !(dev = urma_get_device_by_name((char *)"drydock0")))
        return 2;
    ctx = urma_create_context(dev, 0);
    jfc = urma_create_jfc(ctx, &(urma_jfc_cfg_t){.depth = 4096});
    jfr = urma_create_jfr(ctx,
                          &(urma_jfr_cfg_t){.depth = 64, .trans_mode = URMA_TM_RM, .max_sge = 4, .jfc = jfc});
    urma_jfs_cfg_t s = {.depth = 64, .trans_mode = URMA_TM_RM, .max_sge = 4, .max_rsge = 1, .jfc = jfc};
    jfs = urma_create_jfs(ctx, &s);
    jetty = urma_create_jetty(
        ctx, &(urma_jetty_cfg_t){.flag.bs.share_jfr = 1, .jfs_cfg = s, .shared = {.jfr = jfr, .jfc = jfc}});
    seg = urma_register_seg(ctx, &(urma_seg_cfg_t){.va = (uintptr_t)memory, .len = sizeof(memory)});
    if (!jfs || !jetty || !seg)
        return 3;
    for (int i = 0; i < 40; i++) {
        creations(ctx, jfc, jfr);
        requests(jfs, jetty, jfr, seg);
        plain_arguments(ctx, jfc);
    }
    imports(ctx);
    n = urma_poll_jfc(jfc, 1, &cr);
    return n < 0 || n > 1 ? 4 : 0;
}

static void no_argument_crashes_or_hangs_the_library(void **state)
{
    (void)state;
    fuzz_rounds(24, 20, round_of, "fuzz/urma_args_test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_argument_crashes_or_hangs_the_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
