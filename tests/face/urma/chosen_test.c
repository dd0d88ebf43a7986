// SPDX-License-Identifier: MIT
// What a program may choose itself: the ids of its queues, and the memory of a send ring (rings_test.c: of
// others).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <unistd.h>

#include <ub/umdk/urma/udma/udma_u_ctl.h>

#include "base/log.h"
#include "drydock/urma.h"
#include "face/urma/lib/uend.h"

static const struct uend_options rm = {.mode = URMA_TM_RM};

enum { ID = 7, MOST = 255 };

// ---- ids: for each kind of object, a way to make it with an id, its id, and its end

static struct uend l, r;

static uint32_t id_of_jetty(void *o)
{
    return ((urma_jetty_t *)o)->jetty_id.id;
}

static uint32_t id_of_jfs(void *o)
{
    return ((urma_jfs_t *)o)->jfs_id.id;
}

static uint32_t id_of_jfr(void *o)
{
    return ((urma_jfr_t *)o)->jfr_id.id;
}

static uint32_t id_of_jfc(void *o)
{
    return ((urma_jfc_t *)o)->jfc_id.id;
}

static uint32_t id_of_group(void *o)
{
    return ((urma_jetty_grp_t *)o)->jetty_grp_id.id;
}

static urma_status_t created(void *object, void **out)
{
    *out = object;
    return object ? URMA_SUCCESS : (urma_status_t)errno;
}

static urma_status_t create_jetty(uint32_t id, void **out)
{
    urma_jetty_cfg_t cfg = l.jetty->jetty_cfg;

    cfg.id = id;
    return created(urma_create_jetty(l.ctx, &cfg), out);
}

static urma_status_t create_jfr(uint32_t id, void **out)
{
    urma_jfr_cfg_t cfg = l.jfr->jfr_cfg;

    cfg.id = id;
    return created(urma_create_jfr(l.ctx, &cfg), out);
}

static urma_status_t create_group(uint32_t id, void **out)
{
    urma_jetty_grp_cfg_t cfg = {.id = id, .policy = URMA_JETTY_GRP_POLICY_RR};
    static unsigned names;

    snprintf(cfg.name, sizeof cfg.name, "group %u", names++);
    return created(urma_create_jetty_grp(l.ctx, &cfg), out);
}

// The life in steps: what was chosen is told before, and stays for the next activation.
#define STEPS(kind, KIND, own_cfg)                                                                           \
    static urma_status_t activate_##kind(uint32_t id, void **out)                                            \
    {                                                                                                        \
        urma_##kind##_cfg_t cfg = own_cfg;                                                                   \
        urma_##kind##_t *o;                                                                                  \
        uint32_t told = 0;                                                                                   \
        urma_status_t status;                                                                                \
                                                                                                             \
        CHECK_INT(urma_alloc_##kind(l.ctx, &cfg, &o), 0);                                                    \
        CHECK_INT(urma_set_##kind##_opt(o, URMA_##KIND##_ID, &id, 4), 0);                                    \
        CHECK_INT(urma_get_##kind##_opt(o, URMA_##KIND##_ID, &told, 4), 0);                                  \
        CHECK_INT(told, id);                                                                                 \
        status = urma_active_##kind(o);                                                                      \
        if (status) {                                                                                        \
            CHECK_INT(urma_free_##kind(o), 0);                                                               \
            return status;                                                                                   \
        }                                                                                                    \
        CHECK_INT(urma_deactive_##kind(o), 0);                                                               \
        CHECK_INT(urma_active_##kind(o), 0);                                                                 \
        CHECK_INT(urma_get_##kind##_opt(o, URMA_##KIND##_ID, &told, 4), 0);                                  \
        CHECK_INT(told, id);                                                                                 \
        *out = o;                                                                                            \
        return URMA_SUCCESS;                                                                                 \
    }                                                                                                        \
    static urma_status_t end_##kind(void *o)                                                                 \
    {                                                                                                        \
        return urma_delete_##kind(o);                                                                        \
    }

STEPS(jetty, JETTY, l.jetty->jetty_cfg)
STEPS(jfs, JFS, l.jetty->jetty_cfg.jfs_cfg)
STEPS(jfr, JFR, l.jfr->jfr_cfg)
STEPS(jfc, JFC, l.jfc->jfc_cfg)

static urma_status_t end_group(void *o)
{
    return urma_delete_jetty_grp(o);
}

static urma_status_t control_jfs(uint32_t id, void **out)
{
    struct udma_u_jfs_cfg_ex cfg = {.id = id, .base_cfg = l.jetty->jetty_cfg.jfs_cfg};
    struct udma_u_jfs_info info;
    urma_user_ctl_in_t i = {
        .addr = (uintptr_t)&cfg, .len = sizeof cfg, .opcode = UDMA_U_USER_CTL_CREATE_JFS_EX};
    urma_user_ctl_out_t o = {.addr = (uintptr_t)&info, .len = sizeof info};
    urma_status_t status;

    cfg.jetty_type = UDMA_U_NORMAL_JETTY_TYPE;
    status = urma_user_ctl(l.ctx, &i, &o);
    if (!status)
        *out = info.jfs;
    return status;
}

static const struct {
    const char *name;
    urma_status_t (*make)(uint32_t id, void **out);
    uint32_t (*id)(void *object);
    urma_status_t (*end)(void *object);
    bool one_code; // URMA_FAIL for whatever was wrong
} kinds[] = {
    {"urma_create_jetty", create_jetty, id_of_jetty, end_jetty, false},
    {"urma_create_jfr", create_jfr, id_of_jfr, end_jfr, false},
    {"urma_create_jetty_grp", create_group, id_of_group, end_group, false},
    {"urma_active_jetty", activate_jetty, id_of_jetty, end_jetty, false},
    {"urma_active_jfs", activate_jfs, id_of_jfs, end_jfs, false},
    {"urma_active_jfr", activate_jfr, id_of_jfr, end_jfr, false},
    {"urma_active_jfc", activate_jfc, id_of_jfc, end_jfc, false},
    {"urma_user_ctl", control_jfs, id_of_jfs, end_jfs, true},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void answers(unsigned kind, uint32_t id, urma_status_t expected, void **made)
{
    urma_status_t got = kinds[kind].make(id, made);

    if (expected && kinds[kind].one_code)
        expected = URMA_FAIL;
    if (got != expected)
        check_failed(__FILE__, __LINE__, "%s with id %u: expected %d, got %d (%s)", kinds[kind].name, id,
                     (int)expected, (int)got, dock_log_last());
}

static void an_id_is_taken_by_who_asks_first_of_whatever_kind(void **state)
{
    urma_device_attr_t attr;
    void *made, *other = NULL;

    (void)state;
    CHECK_INT(urma_query_device(l.ctx->dev, &attr), 0);
    CHECK_INT(attr.reserved_jetty_id_min, 1);
    CHECK_INT(attr.reserved_jetty_id_max, MOST);
    for (unsigned i = 0; i < KINDS; i++)
        for (uint32_t id = ID; id <= MOST; id += MOST - ID) {
            answers(i, id, 0, &made);
            if (kinds[i].id(made) != id)
                check_failed(__FILE__, __LINE__, "%s: expected id %u, got %u", kinds[i].name, id,
                             kinds[i].id(made));
            for (unsigned j = 0; j < KINDS; j++)
                answers(j, id, URMA_EEXIST, &other);
            CHECK_INT(kinds[i].end(made), 0);
        }
    for (unsigned i = 0; i < KINDS; i++)
        answers(i, MOST + 1, URMA_EINVAL, &other);
    CHECK(other == NULL);
}

static void a_group_is_found_by_its_name_and_its_id_must_fit(void **state)
{
    urma_jetty_grp_cfg_t cfg = {.id = ID, .name = "one"};
    urma_jetty_grp_t *g = urma_create_jetty_grp(l.ctx, &cfg);

    (void)state;
    CHECK(g != NULL);
    CHECK(urma_create_jetty_grp(l.ctx, &cfg) == g);
    cfg.id = 0;
    CHECK(urma_create_jetty_grp(l.ctx, &cfg) == g);
    cfg.id = ID + 1;
    CHECK(urma_create_jetty_grp(l.ctx, &cfg) == NULL && errno == EINVAL);
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(urma_delete_jetty_grp(g), 0);
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
    upair_close(&l, &r);
    return 0;
}

// ---- ids between processes: who knows the number needs nothing else

static urma_jetty_t *well_known(struct uend *e)
{
    urma_jetty_cfg_t cfg = e->jetty->jetty_cfg;

    cfg.id = ID;
    return urma_create_jetty(e->ctx, &cfg);
}

static void serves(int sock)
{
    urma_jetty_t *jetty;
    struct uend e;
    urma_cr_t cr;

    for (unsigned life = 0; life < 2; life++) {
        uend_open(&e, &rm);
        jetty = well_known(&e);
        CHECK(jetty != NULL);
        CHECK_INT(uend_recv(&e, 1, 0, 64), 0); // its JFR is the jetty's of e as well
        meet(sock);                            // it is there
        ucr_expect(e.rjfc, 1, URMA_CR_SUCCESS, &cr);
        CHECK_INT(cr.local_id, ID);
        CHECK(!strcmp(e.buf, life ? "again" : "hello"));
        meet(sock); // the other cannot have the id
        if (life)
            break;
        CHECK_INT(urma_delete_jetty(jetty), 0);
        uend_close(&e);
        meet(sock); // now it can
        meet(sock); // and has given it back
    }
    _exit(0); // with the id in its hands: who is dead holds none
}

static void sends_to_the_number(int sock)
{
    urma_rjetty_t at = {.jetty_id = {.id = ID},
                        .trans_mode = URMA_TM_RM,
                        .type = URMA_JETTY,
                        .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .order_type = URMA_OI}};
    urma_token_t token = {UEND_TOKEN};
    urma_target_jetty_t *t;
    urma_jetty_t *mine;
    struct uend e;
    struct uwr w;

    uend_open(&e, &rm);
    at.jetty_id.eid = e.ctx->eid;
    for (unsigned life = 0; life < 2; life++) {
        meet(sock);
        t = urma_import_jetty(e.ctx, &at, &token);
        CHECK(t != NULL);
        strcpy(e.buf, life ? "again" : "hello");
        uend_wr(&e, &w, URMA_OPC_SEND, 5, 0, 6);
        w.wr.tjetty = t;
        CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
        ucr_expect(e.jfc, 5, URMA_CR_SUCCESS, NULL);
        CHECK_INT(urma_unimport_jetty(t), 0);
        CHECK(well_known(&e) == NULL && errno == EEXIST);
        meet(sock);
        if (life)
            break;
        meet(sock);
        mine = well_known(&e);
        CHECK(mine != NULL);
        CHECK_INT(urma_delete_jetty(mine), 0);
        meet(sock);
    }
    CHECK_INT(read(sock, &(char){0}, 1), 0); // the other is dead
    for (unsigned tries = 0; !(mine = well_known(&e)) && tries < 5000; tries++)
        usleep(1000); // its descriptors close one after the other
    CHECK(mine != NULL);
    CHECK_INT(urma_delete_jetty(mine), 0);
    uend_close(&e);
}

static void a_well_known_id_leads_to_whoever_has_it(void **state)
{
    (void)state;
    two_processes(sends_to_the_number, serves);
}

// ---- the ring

enum { DEPTH = 6, GUARD = 64, FILL = 0x7e }; // FILL: more than any id that is written

// Memory for the ring of `cfg` that ends where its guard begins.
static char *ring_memory(const urma_jfs_cfg_t *cfg, bool own, uint64_t *bytes)
{
    char *p;

    *bytes = drydock_send_ring_bytes(cfg, own);
    p = aligned_alloc(64, *bytes + GUARD);
    CHECK(p != NULL);
    memset(p, FILL, *bytes + GUARD);
    return p;
}

static void guard_is_whole(const char *p, uint64_t bytes)
{
    for (unsigned i = 0; i < GUARD; i++)
        CHECK_INT(p[bytes + i], FILL);
}

static urma_status_t post(urma_jfs_t *jfs, urma_jetty_t *jetty, struct uwr *w)
{
    urma_jfs_wr_t *bad;

    return jfs ? urma_post_jfs_wr(jfs, &w->wr, &bad) : urma_post_jetty_send_wr(jetty, &w->wr, &bad);
}

// Three rounds of a full ring, each request as long as any can be; what is read back stands in the memory.
static void fill_and_drain(urma_jfs_t *jfs, urma_jetty_t *jetty, const char *ring, uint64_t bytes)
{
    static uint64_t id;
    unsigned seen = 0;
    struct uwr w;

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < DEPTH; i++) {
            uend_wr(&l, &w, URMA_OPC_WRITE_NOTIFY, id + i, i * 256, 176);
            memset(l.buf + i * 256, (int)(1 + id + i), 176);
            w.remote[1] = w.remote[0];
            w.remote[1].addr = l.raddr + 8192 + i * 8;
            w.wr.rw.dst.num_sge = 2;
            w.wr.rw.notify_data = id + i;
            w.wr.flag.bs.inline_flag = 1;
            CHECK_INT(post(jfs, jetty, &w), 0);
        }
        CHECK_INT(post(jfs, jetty, &w), URMA_ENOMEM);
        for (unsigned i = 0; i < DEPTH; i++) {
            ucr_expect(l.jfc, id + i, URMA_CR_SUCCESS, NULL);
            CHECK_INT(r.buf[i * 256], (char)(1 + id + i));
            CHECK_INT(r.buf[i * 256 + 175], (char)(1 + id + i));
            CHECK_INT(*(uint64_t *)(void *)(r.buf + 8192 + i * 8), id + i);
        }
        id += DEPTH;
    }
    for (uint64_t i = 0; i < bytes; i++)
        seen += ring[i] == (char)id;
    CHECK(id < FILL && seen >= 176); // the data of the last of them
}

static void set_base(urma_jfs_t *jfs, urma_jetty_t *jetty, uint64_t at)
{
    CHECK_INT(jfs ? urma_set_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &at, 8)
                  : urma_set_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &at, 8),
              0);
}

static void a_send_ring_may_lie_in_the_programs_memory(void **state)
{
    urma_jetty_cfg_t cfg = l.jetty->jetty_cfg;
    urma_device_attr_t attr;
    uint64_t bytes, at, told, unaligned = 0x1010, none = 0;
    urma_jetty_t *jetty = NULL;
    urma_jfs_t *jfs = NULL;
    uint16_t pi;
    char *ring;

    (void)state;
    cfg.jfs_cfg.depth = DEPTH;
    cfg.jfs_cfg.max_inline_data = 0;
    CHECK_INT(urma_query_device(l.ctx->dev, &attr), 0);
    CHECK_INT(attr.dev_cap.max_jfs_inline_len, DRYDOCK_INLINE);
    CHECK(drydock_send_ring_bytes(&(urma_jfs_cfg_t){.depth = 1u << 30}, false) == 1ull << 38);
    for (unsigned of_jetty = 0; of_jetty < 2; of_jetty++) {
        ring = ring_memory(&cfg.jfs_cfg, false, &bytes);
        at = (uintptr_t)ring;
        if (of_jetty) {
            CHECK_INT(urma_alloc_jetty(l.ctx, &cfg, &jetty), 0);
            CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &unaligned, 8), URMA_EINVAL);
            CHECK_INT(urma_set_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &at, 8), 0);
            CHECK_INT(urma_active_jetty(jetty), 0);
            CHECK_INT(urma_get_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &told, 8), 0);
        } else {
            CHECK_INT(urma_alloc_jfs(l.ctx, &cfg.jfs_cfg, &jfs), 0);
            CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &none, 8), URMA_EINVAL);
            CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &at, 8), 0);
            CHECK_INT(urma_get_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &told, 8), 0); // before it is active
            CHECK_INT(told, at);
            CHECK_INT(urma_active_jfs(jfs), 0);
            CHECK_INT(urma_get_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &told, 8), 0);
        }
        CHECK_INT(told, at);
        for (unsigned life = 0; life < 2; life++) {
            fill_and_drain(jfs, jetty, ring, bytes);
            guard_is_whole(ring, bytes);
            CHECK_INT(jfs ? urma_get_jfs_opt(jfs, URMA_JFS_PI, &pi, 2)
                          : urma_get_jetty_opt(jetty, URMA_JFS_PI, &pi, 2),
                      0);
            CHECK(pi < bytes / 64);
            CHECK_INT(jfs ? urma_deactive_jfs(jfs) : urma_deactive_jetty(jetty), 0);
            memset(ring, FILL, bytes); // it is the program's again, and the next one has to be named
            if (life)
                break;
            set_base(jfs, jetty, at);
            CHECK_INT(jfs ? urma_active_jfs(jfs) : urma_active_jetty(jetty), 0);
        }
        CHECK_INT(jfs ? urma_active_jfs(jfs) : urma_active_jetty(jetty), 0);
        CHECK_INT(jfs ? urma_get_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &told, 8)
                      : urma_get_jetty_opt(jetty, URMA_JFS_SQE_BASE_ADDR, &told, 8),
                  0);
        CHECK(told != at);
        CHECK_INT(ring[0], FILL);
        CHECK_INT(jfs ? urma_deactive_jfs(jfs) : urma_deactive_jetty(jetty), 0);
        CHECK_INT(jfs ? urma_free_jfs(jfs) : urma_free_jetty(jetty), 0);
        jfs = NULL;
        free(ring);
    }
}

// rings_test.c has the other rings; an index is nobody's to set.
static void doorbells_and_indices_are_the_devices(void **state)
{
    static uint64_t place[8] __attribute__((aligned(64)));
    uint64_t at = (uintptr_t)place;
    urma_jfc_cfg_t ccfg = l.jfc->jfc_cfg;
    urma_jfr_cfg_t rcfg = l.jfr->jfr_cfg;
    urma_jfs_cfg_t scfg = l.jetty->jetty_cfg.jfs_cfg;
    urma_jfc_t *jfc;
    urma_jfr_t *jfr;
    urma_jfs_t *jfs;

    (void)state;
    CHECK_INT(urma_alloc_jfc(l.ctx, &ccfg, &jfc), 0);
    CHECK_INT(urma_alloc_jfr(l.ctx, &rcfg, &jfr), 0);
    CHECK_INT(urma_alloc_jfs(l.ctx, &scfg, &jfs), 0);
    CHECK_INT(urma_set_jfc_opt(jfc, URMA_JFC_DB_ADDR, &at, 8), URMA_EINVAL);
    CHECK_INT(urma_set_jfr_opt(jfr, URMA_JFR_DB_ADDR, &at, 8), URMA_EINVAL);
    CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_DB_ADDR, &at, 8), URMA_EINVAL);
    CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_PI, &at, 2), URMA_EINVAL);
    CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_CI, &at, 2), URMA_EINVAL);
    CHECK(strstr(dock_log_last(), "doorbells and indices are the device's"));
    CHECK_INT(urma_free_jfs(jfs), 0);
    CHECK_INT(urma_free_jfr(jfr), 0);
    CHECK_INT(urma_free_jfc(jfc), 0);
}

// UDMA's control call tells the size: what is too small is refused before anything is written.
static void a_ring_that_is_too_small_is_refused(void **state)
{
    struct udma_u_jfs_cfg_ex cfg = {.base_cfg = l.jetty->jetty_cfg.jfs_cfg};
    struct udma_u_jfs_info info;
    urma_user_ctl_in_t i = {
        .addr = (uintptr_t)&cfg, .len = sizeof cfg, .opcode = UDMA_U_USER_CTL_CREATE_JFS_EX};
    urma_user_ctl_out_t o = {.addr = (uintptr_t)&info, .len = sizeof info};
    uint64_t bytes, told;
    char *ring;

    (void)state;
    cfg.jetty_type = UDMA_U_NORMAL_JETTY_TYPE;
    cfg.base_cfg.depth = DEPTH;
    ring = ring_memory(&cfg.base_cfg, false, &bytes);
    cfg.cstm_cfg.flag.bs.sq_cstm = 1;
    CHECK_INT(urma_user_ctl(l.ctx, &i, &o), URMA_FAIL); // no memory at all
    cfg.cstm_cfg.sq = (struct udma_u_que_cfg_ex){.buff_size = (uint32_t)bytes - 64, .buff = ring};
    CHECK_INT(urma_user_ctl(l.ctx, &i, &o), URMA_FAIL);
    CHECK_INT(ring[0], FILL);
    cfg.cstm_cfg.sq.buff_size = (uint32_t)bytes;
    CHECK_INT(urma_user_ctl(l.ctx, &i, &o), 0);
    CHECK_INT(urma_get_jfs_opt(info.jfs, URMA_JFS_SQE_BASE_ADDR, &told, 8), 0);
    CHECK_INT(told, (uintptr_t)ring);
    fill_and_drain(info.jfs, NULL, ring, bytes);
    guard_is_whole(ring, bytes);
    CHECK_INT(urma_delete_jfs(info.jfs), 0);
    free(ring);
}

// What a program must give is what the device takes, whatever the requests; and so one request of any kind
// fits where one was asked for.
static void each_ring_is_as_long_as_is_told(void **state)
{
    static const uint32_t inlined[] = {1, 16, 17, 64, 100, 176};
    static char ring[4096] __attribute__((aligned(64)));
    struct udma_u_jfs_cfg_ex cfg = {.base_cfg = l.jetty->jetty_cfg.jfs_cfg};
    struct udma_u_jfs_info info;
    urma_user_ctl_in_t i = {
        .addr = (uintptr_t)&cfg, .len = sizeof cfg, .opcode = UDMA_U_USER_CTL_CREATE_JFS_EX};
    urma_user_ctl_out_t o = {.addr = (uintptr_t)&info, .len = sizeof info};
    struct uwr w;

    (void)state;
    cfg.jetty_type = UDMA_U_NORMAL_JETTY_TYPE;
    cfg.cstm_cfg.flag.bs.sq_cstm = 1;
    for (uint32_t depth = 1; depth <= 3; depth += 2)
        for (uint8_t sges = 0; sges <= 11; sges++)
            for (size_t n = 0; n < sizeof inlined / sizeof *inlined; n++) {
                cfg.base_cfg.depth = depth;
                cfg.base_cfg.max_sge = sges;
                cfg.base_cfg.max_inline_data = inlined[n];
                uint32_t bytes = (uint32_t)drydock_send_ring_bytes(&cfg.base_cfg, false);
                CHECK(bytes <= sizeof ring);
                cfg.cstm_cfg.sq = (struct udma_u_que_cfg_ex){.buff_size = bytes - 64, .buff = ring};
                if (urma_user_ctl(l.ctx, &i, &o) != URMA_FAIL)
                    check_failed(__FILE__, __LINE__, "depth %u, %u pieces, %u inline: %u bytes are too many",
                                 depth, sges, inlined[n], bytes);
                cfg.cstm_cfg.sq.buff_size = bytes;
                if (urma_user_ctl(l.ctx, &i, &o))
                    check_failed(__FILE__, __LINE__, "depth %u, %u pieces, %u inline: %u bytes are too few",
                                 depth, sges, inlined[n], bytes);
                uend_wr(&l, &w, URMA_OPC_WRITE_NOTIFY, 9, 0, inlined[n]);
                w.remote[1] = w.remote[0];
                w.remote[1].addr = l.raddr + 8192;
                w.wr.rw.dst.num_sge = 2;
                w.wr.flag.bs.inline_flag = 1;
                if (sges) { // inline data is a piece as well
                    CHECK_INT(post(info.jfs, NULL, &w), 0);
                    ucr_expect(l.jfc, 9, URMA_CR_SUCCESS, NULL);
                }
                CHECK_INT(urma_delete_jfs(info.jfs), 0);
            }
}

// A ring of its own memory that the program drives as well.
static void it_may_be_driven_by_hand(void **state)
{
    urma_jfs_cfg_t cfg = l.jetty->jetty_cfg.jfs_cfg;
    urma_jfc_cfg_t ccfg = {.depth = 8};
    struct drydock_target t = drydock_target_of_seg(&l.target->id, l.there, (urma_token_t){UEND_TOKEN});
    struct drydock_queue q;
    uint64_t bytes, at;
    uint8_t own = 1;
    urma_jfs_t *jfs;
    char *ring;

    (void)state;
    cfg.depth = 8;
    cfg.jfc = urma_create_jfc(l.ctx, &ccfg);
    CHECK(cfg.jfc != NULL);
    ring = ring_memory(&cfg, true, &bytes);
    at = (uintptr_t)ring;
    CHECK_INT(bytes, 8 * 64);
    CHECK_INT(urma_alloc_jfs(l.ctx, &cfg, &jfs), 0);
    CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_DB_STATUS, &own, 1), 0);
    CHECK_INT(urma_set_jfs_opt(jfs, URMA_JFS_SQE_BASE_ADDR, &at, 8), 0);
    CHECK_INT(urma_active_jfs(jfs), 0);
    CHECK_INT(drydock_queue_of_jfs(jfs, &q), 0);
    CHECK(q.ring == (unsigned char *)ring);
    for (unsigned i = 0; i < 20; i++) {
        l.buf[i] = (char)(i + 1);
        CHECK_INT(drydock_post_write(&q, &t, l.raddr + i, l.buf + i, 1, DRYDOCK_COMPLETE), 0);
        drydock_ring(&q);
        CHECK_INT(drydock_poll_until(&q, q.rung, 2000000000), 0);
        CHECK_INT(r.buf[i], i + 1);
    }
    guard_is_whole(ring, bytes);
    CHECK_INT(urma_delete_jfs(jfs), 0);
    CHECK_INT(urma_delete_jfc(cfg.jfc), 0);
    free(ring);
}

int main(void)
{
    const struct CMUnitTest chosen[] = {
        cmocka_unit_test(an_id_is_taken_by_who_asks_first_of_whatever_kind),
        cmocka_unit_test(a_group_is_found_by_its_name_and_its_id_must_fit),
        cmocka_unit_test(a_send_ring_may_lie_in_the_programs_memory),
        cmocka_unit_test(doorbells_and_indices_are_the_devices),
        cmocka_unit_test(a_ring_that_is_too_small_is_refused),
        cmocka_unit_test(each_ring_is_as_long_as_is_told),
        cmocka_unit_test(it_may_be_driven_by_hand),
    };
    const struct CMUnitTest apart[] = {cmocka_unit_test(a_well_known_id_leads_to_whoever_has_it)};

    return cmocka_run_group_tests_name("urma, the program's choice", chosen, open_both, close_both) |
           cmocka_run_group_tests_name("urma ids between processes", apart, NULL, NULL);
}
