// SPDX-License-Identifier: MIT
// Completion: when may what be touched again, and how does a program know?
//
// A request has three moments. POSTED: the interface took it, nothing more. EXECUTED: the device moved the
// bytes. OBSERVED: the program polled a completion record (CR) that covers it. Only after the third may a
// source buffer change, or a buffer that was read into be looked at. This program goes through the six
// situations in which that matters, and prints what it sees.
//
//     drydock run completion [DEVICE]        or, with an adapter:        completion [DEVICE]
//
// Both ends are jettys of this process, so that there is nothing but URMA to be read.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ub/umdk/urma/urma_api.h>

enum { DEPTH = 16, SLOTS = 128, TOKEN = 7 };

struct side {
    urma_jfc_t *jfc;
    urma_jfr_t *jfr;
    urma_jetty_t *jetty;
    urma_target_jetty_t *peer;
};

static urma_context_t *ctx;
static urma_jfce_t *jfce;
static struct side near, far; // requests go from near to far
static uint64_t source[SLOTS], target[SLOTS];
static urma_target_seg_t *source_seg, *target_seg, *target_there;

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "completion: %s failed\n", what);
    exit(1);
}

// ---- what every URMA program does first; examples/urma/write_read.c explains it line by line

static void open_device(const char *wanted)
{
    urma_device_t **list, *dev = NULL;
    urma_eid_info_t *eids;
    uint32_t count;
    int n;

    must(urma_init(NULL) == URMA_SUCCESS, "urma_init");
    list = urma_get_device_list(&n);
    for (int i = 0; list && i < n && !dev; i++)
        if (!wanted || !strcmp(wanted, list[i]->name))
            dev = list[i];
    urma_free_device_list(list);
    must(dev != NULL, "finding the device");
    eids = urma_get_eid_list(dev, &count);
    must(eids && count, "urma_get_eid_list");
    ctx = urma_create_context(dev, eids[0].eid_index);
    urma_free_eid_list(eids);
    must(ctx != NULL, "urma_create_context");
    must((jfce = urma_create_jfce(ctx)) != NULL, "urma_create_jfce");
}

static void make_side(struct side *s)
{
    urma_jfc_cfg_t jfc = {.depth = 2 * DEPTH, .jfce = jfce};
    urma_jfr_cfg_t jfr = {.depth = 1, .trans_mode = URMA_TM_RC, .max_sge = 1};
    urma_jetty_cfg_t jetty = {
        .flag.bs.share_jfr = 1,
        .jfs_cfg = {
            .depth = DEPTH, .trans_mode = URMA_TM_RC, .max_sge = 1, .err_timeout = 17, .rnr_retry = 7}};

    must((s->jfc = urma_create_jfc(ctx, &jfc)) != NULL, "urma_create_jfc");
    jfr.jfc = s->jfc;
    must((s->jfr = urma_create_jfr(ctx, &jfr)) != NULL, "urma_create_jfr");
    jetty.jfs_cfg.jfc = s->jfc;
    jetty.shared.jfr = s->jfr;
    must((s->jetty = urma_create_jetty(ctx, &jetty)) != NULL, "urma_create_jetty");
}

static void join(struct side *s, const struct side *to)
{
    urma_token_t none = {0};
    urma_rjetty_t *r;
    uint32_t length;

    must(urma_get_rjetty(to->jetty, &r, &length) == URMA_SUCCESS, "urma_get_rjetty");
    must((s->peer = urma_import_jetty(ctx, r, &none)) != NULL, "urma_import_jetty");
    urma_put_rjetty(r);
    must(urma_bind_jetty(s->jetty, s->peer) == URMA_SUCCESS, "urma_bind_jetty");
}

static urma_target_seg_t *share(void *p, size_t n)
{
    urma_seg_cfg_t cfg = {
        .va = (uintptr_t)p,
        .len = n,
        .token_value = {TOKEN},
        .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};

    return urma_register_seg(ctx, &cfg);
}

static void set_up(const char *wanted)
{
    urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE};
    urma_token_t token = {TOKEN};

    open_device(wanted);
    make_side(&near);
    make_side(&far);
    join(&near, &far);
    join(&far, &near);
    source_seg = share(source, sizeof source);
    target_seg = share(target, sizeof target);
    must(source_seg && target_seg, "urma_register_seg");
    target_there = urma_import_seg(ctx, &target_seg->seg, &token, 0, flag);
    must(target_there != NULL, "urma_import_seg");
}

// ---- requests

struct request {
    urma_jfs_wr_t wr;
    urma_sge_t here, there;
};

// A request for slot i: WRITE source[i] to target[i], or READ it back.
static void build(struct request *r, urma_opcode_t opcode, unsigned i, int complete)
{
    memset(r, 0, sizeof *r);
    r->here = (urma_sge_t){.addr = (uintptr_t)&source[i], .len = 8, .tseg = source_seg};
    r->there = (urma_sge_t){.addr = (uintptr_t)&target[i], .len = 8, .tseg = target_there};
    r->wr.opcode = opcode;
    r->wr.flag.bs.complete_enable = complete; // on success leave a CR; a failure always leaves one
    r->wr.tjetty = near.peer;
    r->wr.user_ctx = i; // ours: comes back in the CR, and means to the device nothing at all
    r->wr.rw.src = (urma_sg_t){opcode == URMA_OPC_READ ? &r->there : &r->here, 1};
    r->wr.rw.dst = (urma_sg_t){opcode == URMA_OPC_READ ? &r->here : &r->there, 1};
}

static urma_status_t post(struct request *r, urma_jfs_wr_t **bad)
{
    return urma_post_jetty_send_wr(near.jetty, &r->wr, bad);
}

static void chain(struct request *r, unsigned n)
{
    for (unsigned i = 0; i + 1 < n; i++)
        r[i].wr.next = &r[i + 1].wr;
}

// The next CR, waited for.
static urma_cr_t next_cr(void)
{
    urma_cr_t cr;
    int n;

    do
        n = urma_poll_jfc(near.jfc, 1, &cr);
    while (n == 0);
    must(n == 1 && cr.status == URMA_CR_SUCCESS, "a request");
    return cr;
}

static unsigned landed(unsigned from, unsigned n)
{
    unsigned count = 0;

    for (unsigned i = from; i < from + n; i++)
        count += target[i] == source[i];
    return count;
}

static void fresh(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        source[i] = 1000 + i;
        target[i] = 0;
    }
}

// ---- 1. Many requests in flight: user_ctx tells their completions apart. It gives no order, no exclusion.

static void many_in_flight(void)
{
    struct request r[8];
    urma_jfs_wr_t *bad;

    fresh();
    for (unsigned i = 0; i < 8; i++) {
        build(&r[i], URMA_OPC_WRITE, i, 1);
        must(post(&r[i], &bad) == URMA_SUCCESS, "post");
    }
    printf("1. eight WRITEs posted; completions by user_ctx:");
    for (unsigned i = 0; i < 8; i++)
        printf(" %llu", (unsigned long long)next_cr().user_ctx);
    printf("\n   landed: %u of 8\n", landed(0, 8));
}

// ---- 2. A list is no transaction: what stands before the bad request is posted and completes.

static void a_bad_one_in_the_list(void)
{
    struct request r[6];
    urma_jfs_wr_t *bad = NULL;

    fresh();
    for (unsigned i = 0; i < 6; i++)
        build(&r[i], URMA_OPC_WRITE, i, 1);
    chain(r, 6);
    r[3].wr.rw.src.num_sge = 2; // this jetty was made for one piece
    must(post(&r[0], &bad) == URMA_EINVAL && bad == &r[3].wr, "finding the bad request");
    printf("2. a list of six, the fourth is wrong: bad_wr is request %llu\n",
           (unsigned long long)bad->user_ctx);
    for (unsigned i = 0; i < 3; i++)
        printf("   completed: %llu\n", (unsigned long long)next_cr().user_ctx);
    printf("   landed: %u of 6\n", landed(0, 6));
    r[3].wr.rw.src.num_sge = 1; // repaired; what follows is still chained to it
    must(urma_post_jetty_send_wr(near.jetty, bad, &bad) == URMA_SUCCESS, "posting from bad_wr on");
    for (unsigned i = 3; i < 6; i++)
        next_cr();
    printf("   posted again from bad_wr on: landed %u of 6\n", landed(0, 6));
}

// ---- 3. complete_enable off: no CR of its own. A later CR of the queue covers those before it.

static void every_fourth(void)
{
    struct request r[8];
    urma_jfs_wr_t *bad;
    urma_cr_t cr;

    fresh();
    for (unsigned i = 0; i < 8; i++)
        build(&r[i], URMA_OPC_WRITE, i, i % 4 == 3);
    chain(r, 8);
    must(post(&r[0], &bad) == URMA_SUCCESS, "post");
    cr = next_cr();
    printf("3. eight WRITEs, every fourth completes: CR %llu covers 0 to %llu",
           (unsigned long long)cr.user_ctx, (unsigned long long)cr.user_ctx);
    cr = next_cr();
    printf(", CR %llu covers 4 to %llu\n", (unsigned long long)cr.user_ctx, (unsigned long long)cr.user_ctx);
    printf("   further CRs: %d, landed: %u of 8\n", urma_poll_jfc(near.jfc, 1, &cr), landed(0, 8));
}

// ---- 4. A full queue: DEPTH requests fit that no polled completion covers. Poll, and go on.

static void full_and_refilled(void)
{
    unsigned posted = 0, refused = 0, done = 0;
    struct request r;
    urma_jfs_wr_t *bad;

    fresh();
    while (done < SLOTS) {
        if (posted < SLOTS) {
            build(&r, URMA_OPC_WRITE, posted, 1);
            urma_status_t status = post(&r, &bad);
            must(status == URMA_SUCCESS || status == URMA_ENOMEM, "post");
            if (status == URMA_SUCCESS) {
                posted++;
                continue;
            }
            refused++; // nothing is lost: this one is posted when there is room
        }
        next_cr();
        done++;
    }
    printf("4. %d WRITEs through a queue of %d: the queue was full %s, landed: %u of %d\n", SLOTS, DEPTH,
           refused ? "more than once" : "never", landed(0, SLOTS), SLOTS);
}

// ---- 5. READ: its buffer belongs to the device from the post to the completion.

static void read_after_completion(void)
{
    struct request r;
    urma_jfs_wr_t *bad;

    fresh();
    target[5] = 4711;
    source[5] = 0;
    build(&r, URMA_OPC_READ, 5, 1);
    must(post(&r, &bad) == URMA_SUCCESS, "post");
    // Here source[5] may be 0, 4711 or, for a longer READ, half of each: nobody may look.
    next_cr();
    printf("5. READ: after its completion the buffer holds %llu\n", (unsigned long long)source[5]);
}

// ---- 6. Sleeping instead of polling. Arm first, then poll once more, then sleep: an event is never missed.

static void by_event(void)
{
    uint32_t one = 1;
    struct request r;
    urma_jfs_wr_t *bad;
    urma_jfc_t *fired;
    int events;

    fresh();
    must(urma_rearm_jfc(near.jfc, false) == URMA_SUCCESS, "urma_rearm_jfc");
    build(&r, URMA_OPC_WRITE, 6, 1);
    must(post(&r, &bad) == URMA_SUCCESS, "post");
    events = urma_wait_jfc(jfce, 1, 5000, &fired);
    must(events == 1 && fired == near.jfc, "urma_wait_jfc");
    printf("6. by event: %d JFC fired", events);
    printf(", its completion is %llu\n", (unsigned long long)next_cr().user_ctx);
    urma_ack_jfc(&fired, &one, 1); // else urma_delete_jfc would wait for it
}

static void close_side(struct side *s)
{
    must(urma_unbind_jetty(s->jetty) == URMA_SUCCESS, "urma_unbind_jetty");
    must(urma_unimport_jetty(s->peer) == URMA_SUCCESS, "urma_unimport_jetty");
    must(urma_delete_jetty(s->jetty) == URMA_SUCCESS, "urma_delete_jetty");
    must(urma_delete_jfr(s->jfr) == URMA_SUCCESS, "urma_delete_jfr");
    must(urma_delete_jfc(s->jfc) == URMA_SUCCESS, "urma_delete_jfc");
}

int main(int argc, char **argv)
{
    set_up(argc > 1 ? argv[1] : NULL);
    many_in_flight();
    a_bad_one_in_the_list();
    every_fourth();
    full_and_refilled();
    read_after_completion();
    by_event();
    close_side(&near);
    close_side(&far);
    must(urma_unimport_seg(target_there) == URMA_SUCCESS, "urma_unimport_seg");
    must(urma_unregister_seg(target_seg) == URMA_SUCCESS, "urma_unregister_seg");
    must(urma_unregister_seg(source_seg) == URMA_SUCCESS, "urma_unregister_seg");
    must(urma_delete_jfce(jfce) == URMA_SUCCESS, "urma_delete_jfce");
    must(urma_delete_context(ctx) == URMA_SUCCESS, "urma_delete_context");
    return urma_uninit();
}
