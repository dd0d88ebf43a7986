// SPDX-License-Identifier: MIT
// libtpsa, as programs take it: by dlopen. What it can tell it tells; what would need hardware it refuses,
// and a wrong argument before that. And liburma_ubagg, whose one function has nothing to choose from.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>

#include <ub/umdk/urma/urma_ubagg.h>
#include <ub/umdk/urma/uvs_api.h>

#include "base/log.h"
#include "face/urma/lib/uend.h"

static void *lib, *ubagg;
static uvs_eid_t ours, nobodys = {{1}};
static uvs_path_set_t path;
static char name[64];

#define CALL(function, ...) (((__typeof__(&(function)))dlsym(lib, #function))(__VA_ARGS__))

static int looks_up_ways(const uvs_eid_t *from, const uvs_eid_t *to, int type, uvs_path_set_t *out)
{
    return CALL(uvs_get_path_set, from, to, (enum uvs_tp_type)type, false, out);
}

static void a_way_leads_from_our_eid_to_any(void **state)
{
    (void)state;
    for (int type = UVS_RTP; type <= UVS_UTP; type++) {
        memset(&path, 0x5a, sizeof path);
        CHECK_INT(looks_up_ways(&ours, &nobodys, type, &path), 0);
        CHECK_INT(path.path_count, 1);
        CHECK(!memcmp(&path.paths[0].src_eid, &ours, sizeof ours) &&
              !memcmp(&path.paths[0].dst_eid, &nobodys, 16));
    }
    CHECK_INT(CALL(uvs_get_device_name_by_eid, &ours, name, sizeof name), 0);
    CHECK(!strcmp(name, the_device()->name));
}

static void each_call_refuses_what_it_must(void **state)
{
    uvs_main_ue_eid_entry_t entry = {0};
    static uvs_main_ue_eid_batch_entry_t batch;
    static char topology[4096];

    (void)state;
    const struct {
        const char *call;
        int got, expected;
    } rows[] = {
        {"path set, no source", looks_up_ways(NULL, &ours, UVS_RTP, &path), -EINVAL},
        {"path set, no target", looks_up_ways(&ours, NULL, UVS_RTP, &path), -EINVAL},
        {"path set, no place", looks_up_ways(&ours, &ours, UVS_RTP, NULL), -EINVAL},
        {"path set, of no type", looks_up_ways(&ours, &ours, UVS_UTP + 1, &path), -EINVAL},
        {"path set, of a stranger", looks_up_ways(&nobodys, &ours, UVS_RTP, &path), -ENODEV},
        {"device name, no EID", CALL(uvs_get_device_name_by_eid, NULL, name, sizeof name), -EINVAL},
        {"device name, no place", CALL(uvs_get_device_name_by_eid, &ours, NULL, sizeof name), -EINVAL},
        {"device name, no room", CALL(uvs_get_device_name_by_eid, &ours, name, 8), -EINVAL},
        {"device name, of a stranger", CALL(uvs_get_device_name_by_eid, &nobodys, name, sizeof name),
         -ENODEV},
        {"create agg dev, no EID", CALL(uvs_create_agg_dev, NULL, "drydock0"), -EINVAL},
        {"create agg dev, no name", CALL(uvs_create_agg_dev, &ours, NULL), -EINVAL},
        {"create agg dev", CALL(uvs_create_agg_dev, &ours, "drydock0"), -EOPNOTSUPP},
        {"delete agg dev, none", CALL(uvs_delete_agg_dev, NULL), -EINVAL},
        {"delete agg dev", CALL(uvs_delete_agg_dev, &ours), -EOPNOTSUPP},
        {"set topo info, none", CALL(uvs_set_topo_info, NULL, 8, 1), -EINVAL},
        {"set topo info, no nodes", CALL(uvs_set_topo_info, topology, 8, 0), -EINVAL},
        {"set topo info", CALL(uvs_set_topo_info, topology, 8, 1), -EOPNOTSUPP},
        {"set share topo info, none", CALL(uvs_set_share_topo_info, NULL, 8, 1), -EINVAL},
        {"set share topo info, of no size", CALL(uvs_set_share_topo_info, topology, 0, 1), -EINVAL},
        {"set share topo info", CALL(uvs_set_share_topo_info, topology, 8, 1), -EOPNOTSUPP},
        {"insert main ue eid, none", CALL(uvs_insert_main_ue_eid, NULL), -EINVAL},
        {"insert main ue eid", CALL(uvs_insert_main_ue_eid, &entry), -EOPNOTSUPP},
        {"insert main ue eid batch, none", CALL(uvs_insert_main_ue_eid_batch, NULL), -EINVAL},
        {"insert main ue eid batch", CALL(uvs_insert_main_ue_eid_batch, &batch), -EOPNOTSUPP},
        {"delete main ue eid, none", CALL(uvs_delete_main_ue_eid, NULL), -EINVAL},
        {"delete main ue eid", CALL(uvs_delete_main_ue_eid, &ours), -EOPNOTSUPP},
        {"lookup main ue eid, none", CALL(uvs_lookup_main_ue_eid, NULL, &ours), -EINVAL},
        {"lookup main ue eid, no place", CALL(uvs_lookup_main_ue_eid, &ours, NULL), -EINVAL},
        {"lookup main ue eid", CALL(uvs_lookup_main_ue_eid, &nobodys, &nobodys), -EOPNOTSUPP},
        {"flush main ue eid", CALL(uvs_flush_main_ue_eid), -EOPNOTSUPP},
        {"get topo info, no place", CALL(uvs_get_topo_info, NULL), -EINVAL},
        {"get topo info", CALL(uvs_get_topo_info, topology), -EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].got != rows[i].expected)
            check_failed(__FILE__, __LINE__, "%s: expected %d, got %d", rows[i].call, rows[i].expected,
                         rows[i].got);
}

static void a_choice_of_chips_is_refused_and_posts_nothing(void **state)
{
    struct uend_options halves = {.mode = URMA_TM_RM, .halves = true};
    __typeof__(&urma_write_affinity) affine =
        (__typeof__(&urma_write_affinity))dlsym(ubagg, "urma_write_affinity");
    urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
    struct uend l, r;
    uint64_t from, to;

    (void)state;
    CHECK(affine != NULL);
    upair_open(&l, &r, &halves);
    from = (uintptr_t)l.buf;
    to = l.raddr;
    memcpy(l.buf, "affinity", 8);
    const struct {
        urma_jfs_t *jfs;
        urma_target_jetty_t *target;
        urma_target_seg_t *remote, *local;
        const char *why;
    } rows[] = {
        {NULL, l.target, l.there, l.seg, "urma_write_affinity"},
        {l.jfs, NULL, l.there, l.seg, "urma_write_affinity"},
        {l.jfs, l.target, NULL, l.seg, "urma_write_affinity"},
        {l.jfs, l.target, l.there, l.seg, "has_drv_ext"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(
            affine(rows[i].jfs, rows[i].target, rows[i].remote, rows[i].local, to, from, 8, flag, 1, 0, 0),
            URMA_EINVAL);
        if (!strstr(dock_log_last(), rows[i].why))
            check_failed(__FILE__, __LINE__, "row %zu: expected a reason with %s, got: %s", i, rows[i].why,
                         dock_log_last());
    }
    ucr_expect_empty(l.jfc, 1);
    CHECK(!memchr(r.buf, 'a', 8));
    CHECK_INT(urma_write(l.jfs, l.target, l.there, l.seg, to, from, 8, flag, 1),
              0); // what it would have been
    ucr_expect(l.jfc, 1, URMA_CR_SUCCESS, NULL);
    CHECK(!memcmp(r.buf, "affinity", 8));
    upair_close(&l, &r);
}

// Beside liburma.so: under a sanitizer dlopen does not look where the program was told to.
static void *open_beside_liburma(const char *file)
{
    char at[4096];
    Dl_info urma;
    size_t dir;

    CHECK(dladdr((void *)(uintptr_t)urma_init, &urma));
    dir = (size_t)(strrchr(urma.dli_fname, '/') - urma.dli_fname) + 1;
    CHECK(dir + strlen(file) < sizeof at);
    memcpy(at, urma.dli_fname, dir);
    strcpy(at + dir, file);
    return dlopen(at, RTLD_NOW);
}

static int open_the_library(void **state)
{
    uint32_t n = 0;
    urma_eid_info_t *eids = urma_get_eid_list(the_device(), &n);

    (void)state;
    CHECK(eids && n);
    memcpy(&ours, &eids[0].eid, sizeof ours);
    urma_free_eid_list(eids);
    lib = open_beside_liburma("libtpsa.so");
    if (!lib)
        check_failed(__FILE__, __LINE__, "expected libtpsa.so beside liburma.so, got: %s", dlerror());
    ubagg = open_beside_liburma("liburma_ubagg.so");
    if (!ubagg)
        check_failed(__FILE__, __LINE__, "expected liburma_ubagg.so beside liburma.so, got: %s", dlerror());
    return 0;
}

static int close_the_library(void **state)
{
    (void)state;
    return dlclose(lib) | dlclose(ubagg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_leads_from_our_eid_to_any),
        cmocka_unit_test(each_call_refuses_what_it_must),
        cmocka_unit_test(a_choice_of_chips_is_refused_and_posts_nothing),
    };

    return cmocka_run_group_tests_name("libtpsa", tests, open_the_library, close_the_library);
}
