// SPDX-License-Identifier: MIT
// The calls of urma_life_test.c that make, change and end objects, by kind; each with the bookkeeping of what
// is there.
#ifndef DOCK_TESTS_FUZZ_LIB_URMA_OBJECTS_H
#define DOCK_TESTS_FUZZ_LIB_URMA_OBJECTS_H

#include "fuzz/lib/urma_world.h"

// Made by steps, through a pointer.
#define MADE(pool, kind, call)                                                                               \
    do {                                                                                                     \
        kind *o = NULL;                                                                                      \
        if ((call) == URMA_SUCCESS)                                                                          \
            keep(&(pool), o);                                                                                \
    } while (0)
#define ENDED(pool, kind, call)                                                                              \
    do {                                                                                                     \
        kind *o = one(&(pool));                                                                              \
        if ((call) == URMA_SUCCESS)                                                                          \
            gone(&(pool), o);                                                                                \
    } while (0)
// Those before the bad one are deleted.
#define ENDED_BATCH(pool, kind, call)                                                                        \
    do {                                                                                                     \
        kind *a[3] = {0}, *bad = NULL;                                                                       \
        int n = (pool).n < 3 ? (int)(pool).n : 3;                                                            \
        memcpy(a, (pool).of, sizeof a);                                                                      \
        urma_status_t status = (call);                                                                       \
        for (int i = 0; i < n && (!status || (bad && a[i] != bad)); i++)                                     \
            gone(&(pool), a[i]);                                                                             \
    } while (0)

static void passed(long long status)
{
    successes += status == 0;
}

static void device_calls(unsigned which)
{
    urma_device_attr_t attr;
    urma_eid_t eid = {{0}};
    urma_device_t *d = rarely() ? NULL : dev;
    uint32_t n;
    int number;

    switch (which) {
    case 0:
        passed(urma_init(NULL));
        break;
    case 1:
        passed(urma_uninit());
        passed(urma_init(NULL));
        break;
    case 2:
        urma_free_device_list(urma_get_device_list(rarely() ? NULL : &number));
        break;
    case 3:
        urma_free_eid_list(urma_get_eid_list(d, rarely() ? NULL : &n));
        break;
    case 4:
        urma_get_device_by_name(d ? d->name : NULL);
        break;
    case 5:
        urma_get_device_by_eid(rarely() ? eid : ctx->eid, (urma_transport_type_t)(chance() % 3));
        break;
    case 6:
        passed(urma_query_device(d, rarely() ? NULL : &attr));
        break;
    case 7:
        passed(urma_str_to_eid(rarely() ? "nothing" : "::1", &eid));
        urma_u32_to_eid((uint32_t)chance(), rarely() ? NULL : &eid);
        break;
    case 8:
        passed(urma_get_uasid(rarely() ? NULL : &n));
        break;
    default: { // a second one beside it
        urma_context_t *c = urma_create_context(d, (uint32_t)chance() % 3);
        passed(urma_set_context_opt(c, URMA_OPT_AGGR_MODE, &n, sizeof n));
        passed(urma_delete_context(c));
    }
    }
}

static void jfc_calls(unsigned which)
{
    urma_jfc_attr_t attr = {.mask = (uint32_t)chance() % 4, .moderate_count = (uint16_t)(chance() % 2000)};
    urma_jfc_t *j = one(&jfcs);
    void *value = place();
    urma_cr_t cr[4];

    switch (which) {
    case 0:
        keep(&jfcs, urma_create_jfc(room(&jfcs), jfc_cfg(false)));
        break;
    case 1:
        passed(urma_modify_jfc(j, &attr));
        break;
    case 2:
        ENDED(jfcs, urma_jfc_t, urma_delete_jfc(o));
        break;
    case 3:
        MADE(jfcs, urma_jfc_t, urma_alloc_jfc(room(&jfcs), jfc_cfg(true), &o));
        break;
    case 4:
        passed(urma_set_jfc_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 5:
        passed(urma_get_jfc_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 6:
        passed(urma_active_jfc(j));
        break;
    case 7: // what it may use from now on is what stays
        if (urma_deactive_jfc(j) == URMA_SUCCESS)
            urma_set_jfc_opt(j, URMA_JFC_BIND_JFCE, &jfce, sizeof jfce);
        break;
    case 8:
        ENDED(jfcs, urma_jfc_t, urma_free_jfc(o));
        break;
    case 9:
        ENDED_BATCH(jfcs, urma_jfc_t, urma_delete_jfc_batch(rarely() ? NULL : a, n, &bad));
        break;
    default:
        urma_poll_jfc(j, (int)(chance() % 6) - 1, rarely() ? NULL : cr);
    }
}

static void event_calls(unsigned which)
{
    urma_jfc_t *told[4] = {0};
    urma_async_event_t event;
    uint32_t counts[4] = {1, 1, 1, 1};
    int n;

    switch (which) {
    case 0:
        keep(&jfces, urma_create_jfce(room(&jfces)));
        break;
    case 1:
        ENDED(jfces, urma_jfce_t, urma_delete_jfce(o));
        break;
    case 2:
        passed(urma_rearm_jfc(one(&jfcs), chance() % 2));
        break;
    case 3: // what is told is acknowledged: a deletion would wait for it
        n = urma_wait_jfc(one(&jfces), 4, 0, told);
        urma_ack_jfc(told, counts, n > 0 ? (uint32_t)n : 0);
        break;
    case 4:
        urma_ack_jfc(NULL, rarely() ? NULL : counts, 1);
        break;
    default:
        if (urma_get_async_event(rarely() ? NULL : ctx, &event) == URMA_SUCCESS)
            urma_ack_async_event(&event);
        urma_ack_async_event(NULL);
    }
}

static void jfs_calls(unsigned which)
{
    urma_jfs_attr_t attr = {.mask = (uint32_t)chance() % 3, .state = (urma_jetty_state_t)(chance() % 6)};
    urma_jfs_t *j = one(&jfss);
    void *value = place();
    urma_jfs_cfg_t cfg;
    urma_cr_t cr[4];

    switch (which) {
    case 0:
        keep(&jfss, urma_create_jfs(room(&jfss), jfs_cfg(false)));
        break;
    case 1:
        passed(urma_modify_jfs(j, rarely() ? NULL : &attr));
        break;
    case 2:
        passed(urma_query_jfs(j, rarely() ? NULL : &cfg, &attr));
        break;
    case 3:
        urma_flush_jfs(j, (int)(chance() % 6) - 1, rarely() ? NULL : cr);
        break;
    case 4:
        ENDED(jfss, urma_jfs_t, urma_delete_jfs(o));
        break;
    case 5:
        MADE(jfss, urma_jfs_t, urma_alloc_jfs(room(&jfss), jfs_cfg(true), &o));
        break;
    case 6:
        passed(urma_set_jfs_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 7:
        passed(urma_get_jfs_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 8:
        passed(urma_active_jfs(j));
        break;
    case 9:
        if (urma_deactive_jfs(j) == URMA_SUCCESS)
            urma_set_jfs_opt(j, URMA_JFS_BIND_JFC, &jfc, sizeof jfc);
        break;
    case 10:
        ENDED(jfss, urma_jfs_t, urma_free_jfs(o));
        break;
    default:
        ENDED_BATCH(jfss, urma_jfs_t, urma_delete_jfs_batch(rarely() ? NULL : a, n, &bad));
    }
}

static void jfr_calls(unsigned which)
{
    urma_jfr_attr_t attr = {.mask = (uint32_t)chance() % 5,
                            .rx_threshold = (uint32_t)chance() % 70,
                            .state = (urma_jfr_state_t)(chance() % 5)};
    urma_jfr_t *j = one(&jfrs);
    void *value = place();
    urma_jfr_cfg_t cfg;

    switch (which) {
    case 0:
        keep(&jfrs, urma_create_jfr(room(&jfrs), jfr_cfg(false)));
        break;
    case 1:
        passed(urma_modify_jfr(j, rarely() ? NULL : &attr));
        break;
    case 2:
        passed(urma_query_jfr(j, rarely() ? NULL : &cfg, &attr));
        break;
    case 3:
        ENDED(jfrs, urma_jfr_t, urma_delete_jfr(o));
        break;
    case 4:
        MADE(jfrs, urma_jfr_t, urma_alloc_jfr(room(&jfrs), jfr_cfg(true), &o));
        break;
    case 5:
        passed(urma_set_jfr_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 6:
        passed(urma_get_jfr_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 7:
        passed(urma_active_jfr(j));
        break;
    case 8:
        if (urma_deactive_jfr(j) == URMA_SUCCESS)
            urma_set_jfr_opt(j, URMA_JFR_BIND_JFC, &jfc, sizeof jfc);
        break;
    case 9:
        ENDED(jfrs, urma_jfr_t, urma_free_jfr(o));
        break;
    default:
        ENDED_BATCH(jfrs, urma_jfr_t, urma_delete_jfr_batch(rarely() ? NULL : a, n, &bad));
    }
}

static void let_jetty_use_what_stays(urma_jetty_t *j)
{
    urma_jetty_grp_t *no_group = NULL;

    urma_set_jetty_opt(j, URMA_JETTY_BIND_JFR, &jfr, sizeof jfr);
    urma_set_jetty_opt(j, URMA_JETTY_BIND_RX_JFC, &jfc, sizeof jfc);
    urma_set_jetty_opt(j, URMA_JFS_BIND_JFC, &jfc, sizeof jfc);
    urma_set_jetty_opt(j, URMA_JETTY_BIND_JTG, &no_group, sizeof no_group);
}

static void jetty_calls(unsigned which)
{
    urma_jetty_attr_t attr = {.mask = (uint32_t)chance() % 4, .state = (urma_jetty_state_t)(chance() % 6)};
    urma_jetty_t *j = one(&jettys);
    void *value = place();
    urma_jetty_cfg_t cfg;
    urma_cr_t cr[4];

    switch (which) {
    case 0:
    case 1:
        keep(&jettys, urma_create_jetty(room(&jettys), jetty_cfg(false)));
        break;
    case 2:
        passed(urma_modify_jetty(j, rarely() ? NULL : &attr));
        break;
    case 3:
        passed(urma_query_jetty(j, rarely() ? NULL : &cfg, &attr));
        break;
    case 4:
        urma_flush_jetty(j, (int)(chance() % 6) - 1, rarely() ? NULL : cr);
        break;
    case 5:
        ENDED(jettys, urma_jetty_t, urma_delete_jetty(o));
        break;
    case 6:
        MADE(jettys, urma_jetty_t, urma_alloc_jetty(room(&jettys), jetty_cfg(true), &o));
        break;
    case 7:
        passed(urma_set_jetty_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 8:
        passed(urma_get_jetty_opt(j, value ? option(value) : 0, value, option_bytes()));
        break;
    case 9:
        passed(urma_active_jetty(j));
        break;
    case 10:
        if (urma_deactive_jetty(j) == URMA_SUCCESS)
            let_jetty_use_what_stays(j);
        break;
    case 11:
        ENDED(jettys, urma_jetty_t, urma_free_jetty(o));
        break;
    default:
        ENDED_BATCH(jettys, urma_jetty_t, urma_delete_jetty_batch(rarely() ? NULL : a, n, &bad));
    }
}

static void group_calls(unsigned which)
{
    urma_jetty_grp_cfg_t cfg = {.flag.value = flags(),
                                .policy = (urma_jetty_grp_policy_t)(chance() % 3),
                                .token_value = {(uint32_t)chance() % 2}};

    cfg.name[0] = (char)('a' + chance() % 3);
    if (which == 0)
        keep(&groups, urma_create_jetty_grp(room(&groups), rarely() ? NULL : &cfg));
    else
        ENDED(groups, urma_jetty_grp_t, urma_delete_jetty_grp(o));
}

// ---- memory

static void segment_calls(unsigned which)
{
    urma_token_id_t *id = chance() % 2 ? NULL : one(&tokens);
    urma_seg_cfg_t cfg = {.va = rarely() ? 0 : (uintptr_t)memory,
                          .len = rarely() ? chance() : chance() % BYTES,
                          .token_id = id,
                          .flag.value = rarely() ? (uint32_t)chance() : 0,
                          .token_value = {(uint32_t)chance() % 4}};
    urma_import_seg_flag_t how = {.value = (uint32_t)chance() % 4};
    urma_target_seg_t *seg = one(&segs);
    urma_seg_t *copy;
    uint32_t bytes;

    switch (which) {
    case 0:
        keep(&tokens, urma_alloc_token_id(room(&tokens)));
        break;
    case 1:
        keep(&tokens, urma_alloc_token_id_ex(room(&tokens), (urma_token_id_flag_t){.value = flags()}));
        break;
    case 2:
        ENDED(tokens, urma_token_id_t, urma_free_token_id(o));
        break;
    case 3:
    case 4:
        if (!rarely()) {
            cfg.flag.bs.token_id_valid = id != NULL;
            cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
        }
        keep(&segs, urma_register_seg(room(&segs), rarely() ? NULL : &cfg));
        break;
    case 5:
        ENDED(segs, urma_target_seg_t, urma_unregister_seg(o));
        break;
    case 6:
        keep(&far_segs, urma_import_seg(room(&far_segs), seg ? &seg->seg : NULL, token(), chance(), how));
        break;
    case 7:
        ENDED(far_segs, urma_target_seg_t, urma_unimport_seg(o));
        break;
    default:
        if (urma_get_seg_ctx(seg, rarely() ? NULL : &copy, &bytes) == URMA_SUCCESS)
            urma_put_seg_ctx(copy);
    }
}

#endif
