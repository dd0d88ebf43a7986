// SPDX-License-Identifier: MIT
// A JFC's and a JFR's ring in the program's memory: another process completes into the one and takes receives
// from the other, and both are the program's again when the object is deactivated.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ub/umdk/urma/udma/udma_u_ctl.h>

#include "base/log.h"
#include "drydock/urma.h"
#include "face/urma/lib/uend.h"
#include "lib/maps.h"

static const struct uend_options rm = {.mode = URMA_TM_RM, .recv_depth = 64};

enum { DEPTH = 128, FILL = 0x7e, BYTES = 32, ROUNDS = 5 };

// What is to be a ring, and a page behind it that nobody may touch.
struct place {
    char *at;
    uint64_t bytes;
};

static struct place make_place(uint64_t bytes)
{
    struct place p = {.bytes = bytes};

    p.at = maps_in_one(bytes + 4096);
    CHECK(p.at != MAP_FAILED);
    CHECK_INT(mprotect(p.at + bytes, 4096, PROT_NONE), 0);
    memset(p.at, FILL, bytes);
    return p;
}

static void end_place(struct place *p)
{
    CHECK_INT(munmap(p->at, p->bytes + 4096), 0);
}

static bool is_private(const struct place *p)
{
    return maps_look(p->at, p->bytes).private_anon == p->bytes;
}

static bool untouched(const struct place *p)
{
    for (uint64_t i = 0; i < p->bytes; i++)
        if (p->at[i] != FILL)
            return false;
    return true;
}

// A jetty that receives through a JFC and a JFR of the program's own memory.
struct own {
    urma_jfc_t *jfc;
    urma_jfr_t *jfr;
    urma_jetty_t *jetty;
    struct place cqes, rqes;
};

static urma_jfc_cfg_t jfc_config(void)
{
    return (urma_jfc_cfg_t){.depth = DEPTH};
}

static urma_jfr_cfg_t jfr_config(const struct uend *e, urma_jfc_t *jfc)
{
    urma_jfr_cfg_t cfg = e->jfr->jfr_cfg;

    cfg.depth = DEPTH;
    cfg.max_sge = 3; // four have room
    cfg.jfc = jfc;
    cfg.id = 0;
    return cfg;
}

static uint64_t base_of(struct own *o, bool of_jfr)
{
    uint64_t at = 0;

    CHECK_INT(of_jfr ? urma_get_jfr_opt(o->jfr, URMA_JFR_RQE_BASE_ADDR, &at, 8)
                     : urma_get_jfc_opt(o->jfc, URMA_JFC_CQE_BASE_ADDR, &at, 8),
              0);
    return at;
}

static void name_places(struct own *o)
{
    uint64_t at = (uintptr_t)o->cqes.at;

    CHECK_INT(urma_set_jfc_opt(o->jfc, URMA_JFC_CQE_BASE_ADDR, &at, 8), 0);
    at = (uintptr_t)o->rqes.at;
    CHECK_INT(urma_set_jfr_opt(o->jfr, URMA_JFR_RQE_BASE_ADDR, &at, 8), 0);
    CHECK_INT(base_of(o, false), (uintptr_t)o->cqes.at); // before it is active
    CHECK_INT(base_of(o, true), (uintptr_t)o->rqes.at);
}

static void activate(struct uend *e, struct own *o)
{
    urma_jetty_cfg_t cfg = e->jetty->jetty_cfg;

    CHECK_INT(urma_active_jfc(o->jfc), 0);
    CHECK_INT(urma_active_jfr(o->jfr), 0);
    cfg.shared.jfr = o->jfr;
    cfg.shared.jfc = o->jfc;
    cfg.id = 0;
    o->jetty = urma_create_jetty(e->ctx, &cfg);
    CHECK(o->jetty != NULL);
}

static void deactivate(struct own *o)
{
    CHECK_INT(urma_delete_jetty(o->jetty), 0);
    CHECK_INT(urma_deactive_jfr(o->jfr), 0);
    CHECK_INT(urma_deactive_jfc(o->jfc), 0);
}

static void open_own(struct uend *e, struct own *o)
{
    urma_jfc_cfg_t ccfg = jfc_config();
    urma_jfr_cfg_t rcfg;

    CHECK_INT(urma_alloc_jfc(e->ctx, &ccfg, &o->jfc), 0);
    rcfg = jfr_config(e, o->jfc);
    CHECK_INT(urma_alloc_jfr(e->ctx, &rcfg, &o->jfr), 0);
    o->cqes = make_place(drydock_jfc_ring_bytes(&ccfg));
    o->rqes = make_place(drydock_jfr_ring_bytes(&rcfg));
    name_places(o);
    activate(e, o);
}

static void close_own(struct own *o)
{
    CHECK_INT(urma_free_jfr(o->jfr), 0);
    CHECK_INT(urma_free_jfc(o->jfc), 0);
}

static void post_receive(struct uend *e, struct own *o, uint64_t id)
{
    urma_sge_t sge = {.addr = (uintptr_t)e->buf + id * BYTES, .len = BYTES, .tseg = e->seg};
    urma_jfr_wr_t wr = {.src = {.sge = &sge, .num_sge = 1}, .user_ctx = id}, *bad;

    CHECK_INT(urma_post_jfr_wr(o->jfr, &wr, &bad), 0);
}

// The peer fills the whole JFC; what it wrote is seen by the program at its own addresses.
static void take_rounds(struct uend *e, struct own *o, int sock)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < DEPTH; i++)
            post_receive(e, o, i);
        meet(sock); // posted
        meet(sock); // sent
        for (unsigned i = 0; i < DEPTH; i++) {
            ucr_expect(o->jfc, i, URMA_CR_SUCCESS, NULL);
            CHECK_INT(e->buf[i * BYTES], (char)(1 + round + i));
        }
    }
}

static void tell_jetty(const struct own *o, int sock)
{
    tell(sock, &o->jetty->jetty_id, sizeof o->jetty->jetty_id);
}

static void is_in_the_places(struct own *o)
{
    CHECK_INT(base_of(o, false), (uintptr_t)o->cqes.at);
    CHECK_INT(base_of(o, true), (uintptr_t)o->rqes.at);
}

// ---- the peer

static urma_target_jetty_t *import_named(struct uend *e, urma_jetty_id_t id)
{
    urma_rjetty_t at = {.jetty_id = id,
                        .trans_mode = URMA_TM_RM,
                        .type = URMA_JETTY,
                        .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .order_type = URMA_OI}};
    urma_token_t token = {UEND_TOKEN};
    urma_target_jetty_t *t = urma_import_jetty(e->ctx, &at, &token);

    CHECK(t != NULL);
    return t;
}

static urma_target_jetty_t *import_told(struct uend *e, int sock)
{
    urma_jetty_id_t id;

    hear(sock, &id, sizeof id);
    return import_named(e, id);
}

static void send_one(struct uend *e, urma_target_jetty_t *t, unsigned i, urma_cr_status_t status)
{
    struct uwr w;

    uend_wr(e, &w, URMA_OPC_SEND, 100 + i, i * BYTES, BYTES);
    w.wr.tjetty = t;
    CHECK_INT(uend_post(e, &w.wr, NULL), 0);
    ucr_expect(e->jfc, 100 + i, status, NULL);
}

static void send_rounds(struct uend *e, urma_target_jetty_t *t, int sock)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < DEPTH; i++)
            memset(e->buf + i * BYTES, (int)(1 + round + i), BYTES);
        meet(sock);
        for (unsigned i = 0; i < DEPTH; i++)
            send_one(e, t, i, URMA_CR_SUCCESS);
        meet(sock);
    }
}

// ---- whole lives

// 64 bytes that more was written to than the mark of an empty place.
static bool is_completion(const char *at)
{
    for (unsigned i = 4; i < 64; i++)
        if (at[i])
            return true;
    return false;
}

static void lives(int sock)
{
    struct own o;
    struct uend e;
    uint64_t va, first;
    urma_jetty_id_t old;

    uend_meet(&e, &rm, sock);
    open_own(&e, &o);
    CHECK_INT(o.cqes.bytes, DEPTH * 64);
    for (unsigned i = 0; i < DEPTH; i++) // cleared, from end to end
        CHECK(!is_completion(o.cqes.at + i * 64));
    for (unsigned i = 0; i < DEPTH * 4 * 16; i++)
        CHECK_INT(o.rqes.at[i], 0);
    for (unsigned life = 0; life < 2; life++) {
        is_in_the_places(&o);
        tell_jetty(&o, sock);
        take_rounds(&e, &o, sock);
        for (unsigned i = 0; i < DEPTH; i++)
            CHECK(is_completion(o.cqes.at + i * 64));
        memcpy(&va, o.rqes.at + 8, 8); // a receive begins with length, key, address
        CHECK(va >= (uintptr_t)e.buf && va < (uintptr_t)e.buf + DEPTH * BYTES);
        old = o.jetty->jetty_id;
        deactivate(&o);
        CHECK(is_private(&o.cqes) && is_private(&o.rqes)); // they are the program's again
        memset(o.cqes.at, FILL, o.cqes.bytes);
        memset(o.rqes.at, FILL, o.rqes.bytes);
        meet(sock);
        meet(sock); // the peer has tried to send there once more
        CHECK(untouched(&o.cqes) && untouched(&o.rqes));
        if (life)
            break;
        name_places(&o);
        activate(&e, &o);
    }
    activate(&e, &o); // not named anew: the device's memory
    CHECK(base_of(&o, false) != (uintptr_t)o.cqes.at && base_of(&o, true) != (uintptr_t)o.rqes.at);
    first = base_of(&o, false);
    CHECK(first != 0 && old.id != 0);
    tell_jetty(&o, sock);
    take_rounds(&e, &o, sock);
    CHECK(untouched(&o.cqes) && untouched(&o.rqes));
    deactivate(&o);
    close_own(&o);
    end_place(&o.cqes);
    end_place(&o.rqes);
    meet(sock);
    uend_close(&e);
}

static void peer_of_lives(int sock)
{
    urma_target_jetty_t *t;
    struct uend e;

    uend_meet(&e, &rm, sock);
    for (unsigned life = 0; life < 3; life++) {
        t = import_told(&e, sock);
        send_rounds(&e, t, sock);
        if (life < 2) {
            meet(sock);
            send_one(&e, t, 0, URMA_CR_ACK_TIMEOUT_ERR); // nobody answers for it any more
            meet(sock);
        }
        CHECK_INT(urma_unimport_jetty(t), 0);
    }
    meet(sock);
    uend_close(&e);
}

static void peers_write_the_rings_where_the_program_has_them(void **state)
{
    (void)state;
    two_processes(peer_of_lives, lives);
}

// ---- what the program does to the memory meanwhile

static void forks_and_unmaps(int sock)
{
    struct place cqes, rqes;
    struct own o;
    struct uend e;
    int status;
    pid_t child;

    uend_meet(&e, &rm, sock);
    open_own(&e, &o);
    tell_jetty(&o, sock);
    child = fork(); // its copy is its own
    if (!child) {
        memset(o.cqes.at, 0xff, o.cqes.bytes);
        memset(o.rqes.at, 0xff, o.rqes.bytes);
        _exit(0);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    take_rounds(&e, &o, sock);
    cqes = o.cqes;
    rqes = o.rqes;
    CHECK(mmap(cqes.at, cqes.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          cqes.at);
    CHECK(mmap(rqes.at, rqes.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          rqes.at);
    memset(cqes.at, FILL, cqes.bytes); // other memory now
    memset(rqes.at, FILL, rqes.bytes);
    take_rounds(&e, &o, sock);
    deactivate(&o);
    CHECK(untouched(&cqes) && untouched(&rqes));
    close_own(&o);
    end_place(&cqes);
    end_place(&rqes);
    meet(sock);
    uend_close(&e);
}

static void peer_of_changes(int sock)
{
    urma_target_jetty_t *t;
    struct uend e;

    uend_meet(&e, &rm, sock);
    t = import_told(&e, sock);
    send_rounds(&e, t, sock);
    send_rounds(&e, t, sock);
    CHECK_INT(urma_unimport_jetty(t), 0);
    meet(sock);
    uend_close(&e);
}

static void the_queue_goes_on_whatever_becomes_of_the_address(void **state)
{
    (void)state;
    two_processes(peer_of_changes, forks_and_unmaps);
}

// ---- senders that are killed at work

enum { SENDERS = 4, ENOUGH = 300 };

static void __attribute__((noreturn)) send_for_ever(urma_jetty_id_t id)
{
    urma_target_jetty_t *t;
    struct uend e;

    uend_open(&e, &rm);
    t = import_named(&e, id);
    for (unsigned i = 0;; i++)
        send_one(&e, t, i % DEPTH, URMA_CR_SUCCESS);
}

static void kills_senders(int sock)
{
    urma_jetty_id_t id;
    pid_t sender;

    for (unsigned n = 0; n < SENDERS; n++) {
        hear(sock, &id, sizeof id);
        sender = fork();
        if (!sender)
            send_for_ever(id);
        meet(sock); // enough has come
        CHECK_INT(kill(sender, SIGKILL), 0);
        CHECK_INT(waitpid(sender, NULL, 0), sender);
        meet(sock);
    }
    meet(sock);
}

// Receives that came back are posted again. A dead sender's may come back as an error; one that came twice
// would be refused, for all DEPTH are out then.
static unsigned take_and_repost(struct uend *e, struct own *o)
{
    urma_cr_t cr[16];
    int n = urma_poll_jfc(o->jfc, 16, cr);

    CHECK(n >= 0);
    for (int i = 0; i < n; i++) {
        CHECK(cr[i].user_ctx < DEPTH);
        post_receive(e, o, cr[i].user_ctx);
    }
    return (unsigned)n;
}

static void outlives_senders(int sock)
{
    struct own o;
    struct uend e;
    unsigned got;

    uend_open(&e, &rm);
    open_own(&e, &o);
    for (unsigned i = 0; i < DEPTH; i++)
        post_receive(&e, &o, i);
    for (unsigned n = 0; n < SENDERS; n++) {
        tell_jetty(&o, sock);
        for (got = 0; got < ENOUGH;)
            got += take_and_repost(&e, &o);
        meet(sock);
        meet(sock); // it is dead
    }
    deactivate(&o);
    CHECK(is_private(&o.cqes) && is_private(&o.rqes));
    close_own(&o);
    end_place(&o.cqes);
    end_place(&o.rqes);
    meet(sock);
    uend_close(&e);
}

static void who_is_killed_at_work_leaves_the_rings_to_others(void **state)
{
    (void)state;
    two_processes(kills_senders, outlives_senders);
}

// ---- refusals

static struct uend l, r;

static int open_pair(void **state)
{
    (void)state;
    upair_open(&l, &r, &rm);
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    upair_close(&l, &r);
    return 0;
}

// Both kinds at `at`; then, as nothing was made of it, `elsewhere`.
static void refused_there(void *at, urma_status_t status, const char *words, bool elsewhere)
{
    uint64_t named = (uintptr_t)at;
    urma_jfc_cfg_t ccfg = jfc_config();
    urma_jfr_cfg_t rcfg = jfr_config(&l, l.rjfc);
    struct own o = {.cqes = make_place(drydock_jfc_ring_bytes(&ccfg)),
                    .rqes = make_place(drydock_jfr_ring_bytes(&rcfg))};

    CHECK_INT(urma_alloc_jfc(l.ctx, &ccfg, &o.jfc), 0);
    CHECK_INT(urma_alloc_jfr(l.ctx, &rcfg, &o.jfr), 0);
    CHECK_INT(urma_set_jfc_opt(o.jfc, URMA_JFC_CQE_BASE_ADDR, &named, 8), 0);
    CHECK_INT(urma_set_jfr_opt(o.jfr, URMA_JFR_RQE_BASE_ADDR, &named, 8), 0);
    CHECK_INT(urma_active_jfc(o.jfc), status);
    CHECK(strstr(dock_log_last(), words));
    CHECK_INT(urma_active_jfr(o.jfr), status);
    CHECK(strstr(dock_log_last(), words));
    if (elsewhere) {
        name_places(&o);
        activate(&l, &o);
        is_in_the_places(&o);
        deactivate(&o);
    }
    close_own(&o);
    end_place(&o.cqes);
    end_place(&o.rqes);
}

// Memory over a multiple of 1 GiB, which the arena has in two places. It stays until the process ends.
static void *over_an_edge(void)
{
    size_t half = 32768;

    for (uint64_t edge = 1ull << 40; edge < 1ull << 46; edge += 1ull << 30) {
        void *want = (void *)(uintptr_t)(edge - 4096);
        void *at = mmap(want, half + 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == want)
            return memset(at, FILL, half + 4096);
        if (at != MAP_FAILED)
            munmap(at, half + 4096);
    }
    check_failed(__FILE__, __LINE__, "no multiple of 1 GiB is free");
}

static void memory_that_peers_cannot_reach_is_refused_in_words(void **state)
{
    size_t bytes = 4 * 4096 + 65536;
    char *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *closed = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    urma_jfc_cfg_t ccfg = jfc_config();
    uint64_t odd = 4096 + 64, none = 0, live;
    urma_jfc_t *jfc;
    urma_jfr_t *jfr;

    (void)state;
    CHECK(shared != MAP_FAILED && closed != MAP_FAILED);
    memset(shared, FILL, bytes);
    refused_there(shared, URMA_FAIL, "cannot be adopted", true);
    CHECK(untouched(&(struct place){shared, bytes}));
    refused_there(closed, URMA_FAIL, "may not be written", true);
    CHECK_INT(urma_get_jfc_opt(l.jfc, URMA_JFC_CQE_BASE_ADDR, &live, 8), 0);
    refused_there((void *)(uintptr_t)((live + 4095) & ~4095ull), URMA_EINVAL, "the device's own", true);
    refused_there(over_an_edge(), URMA_FAIL, "cannot be adopted", true);
    CHECK_INT(urma_alloc_jfc(l.ctx, &ccfg, &jfc), 0);
    CHECK_INT(urma_alloc_jfr(l.ctx, &l.jfr->jfr_cfg, &jfr), 0);
    CHECK_INT(urma_set_jfc_opt(jfc, URMA_JFC_CQE_BASE_ADDR, &odd, 8), URMA_EINVAL);
    CHECK_INT(urma_set_jfc_opt(jfc, URMA_JFC_CQE_BASE_ADDR, &none, 8), URMA_EINVAL);
    CHECK_INT(urma_set_jfr_opt(jfr, URMA_JFR_RQE_BASE_ADDR, &odd, 8), URMA_EINVAL);
    CHECK_INT(urma_set_jfr_opt(jfr, URMA_JFR_RQE_BASE_ADDR, &none, 8), URMA_EINVAL);
    CHECK(strstr(dock_log_last(), "multiple of 4096"));
    CHECK_INT(urma_free_jfr(jfr), 0);
    CHECK_INT(urma_free_jfc(jfc), 0);
    munmap(shared, bytes);
    munmap(closed, bytes);
}

static void alone_without_adoption(int sock)
{
    static char plain[65536] __attribute__((aligned(4096)));

    setenv("DRYDOCK_ADOPT", "off", 1);
    upair_open(&l, &r, &rm);
    memset(plain, FILL, sizeof plain);
    refused_there(plain, URMA_FAIL, "cannot be adopted", false);
    CHECK(untouched(&(struct place){plain, sizeof plain}));
    upair_close(&l, &r);
    meet(sock);
}

static void waits(int sock)
{
    meet(sock);
}

static void without_adoption_there_is_none(void **state)
{
    (void)state;
    two_processes(waits, alone_without_adoption);
}

// UDMA's control call tells the size of a JFR's memory.
static void what_is_too_small_for_a_jfr_is_refused(void **state)
{
    struct udma_u_jfr_cfg_ex cfg = {.base_cfg = jfr_config(&l, l.rjfc)};
    struct place p;
    urma_jfr_t *jfr;
    urma_user_ctl_in_t i = {
        .addr = (uintptr_t)&cfg, .len = sizeof cfg, .opcode = UDMA_U_USER_CTL_CREATE_JFR_EX};
    urma_user_ctl_out_t o = {.addr = (uintptr_t)&jfr, .len = sizeof jfr};
    uint64_t told;

    (void)state;
    for (uint32_t depth = 1; depth <= 1000; depth = depth * 3 + 1)
        for (uint32_t pieces = 0; pieces <= 5; pieces++) {
            cfg.base_cfg.depth = depth;
            cfg.base_cfg.max_sge = (uint8_t)pieces;
            p = make_place(drydock_jfr_ring_bytes(&cfg.base_cfg));
            cfg.cstm_cfg.flag.bs.rq_cstm = 1;
            cfg.cstm_cfg.rq = (struct udma_u_que_cfg_ex){.buff_size = (uint32_t)p.bytes - 1, .buff = p.at};
            CHECK_INT(urma_user_ctl(l.ctx, &i, &o), URMA_FAIL);
            CHECK(untouched(&p));
            cfg.cstm_cfg.rq.buff_size = (uint32_t)p.bytes;
            cfg.cstm_cfg.flag.bs.idxq_cstm = 1; // it has no memory of its own
            CHECK_INT(urma_user_ctl(l.ctx, &i, &o), URMA_ENOPERM);
            cfg.cstm_cfg.flag.bs.idxq_cstm = 0;
            CHECK_INT(urma_user_ctl(l.ctx, &i, &o), 0);
            CHECK_INT(urma_get_jfr_opt(jfr, URMA_JFR_RQE_BASE_ADDR, &told, 8), 0);
            CHECK_INT(told, (uintptr_t)p.at);
            CHECK_INT(urma_delete_jfr(jfr), 0);
            end_place(&p);
        }
}

int main(void)
{
    const struct CMUnitTest apart[] = {
        cmocka_unit_test(peers_write_the_rings_where_the_program_has_them),
        cmocka_unit_test(the_queue_goes_on_whatever_becomes_of_the_address),
        cmocka_unit_test(who_is_killed_at_work_leaves_the_rings_to_others),
        cmocka_unit_test(without_adoption_there_is_none),
    };
    const struct CMUnitTest refused[] = {
        cmocka_unit_test(memory_that_peers_cannot_reach_is_refused_in_words),
        cmocka_unit_test(what_is_too_small_for_a_jfr_is_refused),
    };

    return cmocka_run_group_tests_name("urma rings that peers write", apart, NULL, NULL) |
           cmocka_run_group_tests_name("urma rings, refused", refused, open_pair, close_pair);
}
