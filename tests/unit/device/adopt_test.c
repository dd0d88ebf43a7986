// SPDX-License-Identifier: MIT
// timeout: 180
// Registered memory is mapped memory: what is adopted, what is not, and that the program gets its own memory
// back as it was.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/procfile.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define PAGE 4096u
#define RIGHTS                                                                                               \
    (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |                          \
     DOCK_ACCESS_REMOTE_ATOMIC | DOCK_ACCESS_MW_BIND)

// An initiator whose memory is in its arena, and a target of which the tests register this and that.
struct fix {
    struct dock_dev *devs[2];
    struct end a, b;
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    struct end_opts o = {0};

    setenv("DRYDOCK_ADOPT", "inner", 1);
    assert_int_equal(dock_dev_open(NULL, &f->devs[0]), 0);
    open_adopting(&f->devs[1]);
    end_open(&f->a, f->devs[0], &o);
    end_open(&f->b, f->devs[1], &o);
    pair_connect(&f->a, &f->b);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;

    end_close(&f->a);
    end_close(&f->b);
    assert_int_equal(dock_dev_close(f->devs[0]), 0);
    assert_int_equal(dock_dev_close(f->devs[1]), 0);
    free(f);
    return 0;
}

static struct dock_mr *reg(struct fix *f, void *at, size_t len)
{
    struct dock_mr *mr;
    int err = dock_mr_register(f->devs[1], f->b.pd, (uintptr_t)at, len, (uintptr_t)at, RIGHTS, &mr);

    if (err)
        print_message("register: %s\n", dock_log_last());
    assert_int_equal(err, 0);
    return mr;
}

static void dereg(struct dock_mr *mr)
{
    assert_int_equal(dock_mr_deregister(mr), 0);
}

static char *map_pages(size_t pages)
{
    char *p = maps_in_one(pages * PAGE);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static void run(struct fix *f, uint8_t op, const struct dock_mr *mr, void *at, uint32_t len)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op, &f->a, &sge, 0, len, mr, (uintptr_t)at);

    carry_out(&f->a, &wr);
}

// Write a pattern through the device and read it back through the device and by the program.
static void exercise(struct fix *f, const struct dock_mr *mr, char *at, uint32_t len, uint64_t seed)
{
    char *mine = malloc(len);

    bytes_fill(f->a.mem, len, seed);
    memcpy(mine, f->a.mem, len);
    run(f, DOCK_OP_WRITE, mr, at, len);
    assert_memory_equal(at, mine, len);
    at[len / 2] ^= 0x55;
    mine[len / 2] ^= 0x55;
    memset(f->a.mem, 0, len);
    run(f, DOCK_OP_READ, mr, at, len);
    assert_memory_equal(f->a.mem, mine, len);
    free(mine);
}

static uint64_t fallbacks(const struct fix *f)
{
    return dock_peek64(&f->devs[1]->port->fallback_calls);
}

static uint64_t adopted_now(const struct fix *f)
{
    return dock_peek64(&f->devs[1]->port->adopt.bytes);
}

static void private_memory_is_reached_by_stores(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(64);

    memset(p, 7, 64 * PAGE);
    struct dock_mr *mr = reg(f, p, 64 * PAGE);
    assert_int_equal(maps_look(p, 64 * PAGE).adopted, 64 * PAGE);
    assert_int_equal(adopted_now(f), 64 * PAGE);
    for (unsigned i = 0; i < 64 * PAGE; i++)
        assert_int_equal(p[i], 7);
    uint64_t before = fallbacks(f);
    exercise(f, mr, p, 64 * PAGE, 1);
    exercise(f, mr, p + 5000, 8, 2);
    assert_int_equal(fallbacks(f), before);
    p[0] = 99;
    dereg(mr);
    assert_int_equal(p[0], 99);
    assert_int_equal(maps_look(p, 64 * PAGE).private_anon, 64 * PAGE);
    assert_int_equal(adopted_now(f), 0);
    munmap(p, 64 * PAGE);
}

// A request spans plain edge, adopted inside, plain edge; in the local buffer too.
static void edges_go_through_the_kernel(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(8);

    memset(p, 7, 8 * PAGE); // parts of a mapping that nobody has touched yet do not become one again
    struct dock_mr *mr = reg(f, p + 100, 6 * PAGE);
    struct maps_seen seen = maps_look(p, 8 * PAGE);

    assert_int_equal(seen.adopted, 5 * PAGE);
    uint64_t before = fallbacks(f);
    for (unsigned i = 0; i < 40; i++) {
        uint32_t from = (uint32_t)(dock_mix(i) % (5 * PAGE)), len = 1 + (uint32_t)(dock_mix(i + 99) % PAGE);
        exercise(f, mr, p + 100 + from, len, i);
    }
    exercise(f, mr, p + 100, 6 * PAGE, 77);
    assert_true(fallbacks(f) > before);
    dereg(mr);
    assert_int_equal(maps_look(p, 8 * PAGE).mappings, 1);
    munmap(p, 8 * PAGE);
}

// The initiator's own memory is adopted in part as well.
static void local_buffers_in_pieces(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(8), *q = map_pages(8);
    struct dock_mr *local, *remote = reg(f, q + 8, 7 * PAGE);
    struct dock_wc wc;

    assert_int_equal(
        dock_mr_register(f->devs[0], f->a.pd, (uintptr_t)p + 300, 7 * PAGE, 0x1234500000, RIGHTS, &local), 0);
    for (unsigned i = 0; i < 40; i++) {
        uint32_t off = (uint32_t)(dock_mix(i) % (3 * PAGE)),
                 len = 1 + (uint32_t)(dock_mix(i + 9) % (4 * PAGE));
        struct dock_sge sge = {.addr = 0x1234500000 + off, .len = len, .key = local->lkey};
        struct dock_wr wr = {.op = i % 2 ? DOCK_OP_WRITE : DOCK_OP_READ,
                             .flags = DOCK_F_COMPLETE,
                             .sge = &sge,
                             .nsge = 1,
                             .rkey = remote->rkey,
                             .raddr = (uintptr_t)q + 8 + off / 2};
        bytes_fill(i % 2 ? p + 300 + off : q + 8 + off / 2, len, i);
        memset(i % 2 ? q + 8 + off / 2 : p + 300 + off, 0, len);
        assert_int_equal(end_post(&f->a, &wr), 0);
        assert_true(end_wait(f->a.scq, &wc, 5000 * slow_down()));
        assert_int_equal(wc.status, DOCK_OK);
        assert_memory_equal(p + 300 + off, q + 8 + off / 2, len);
    }
    dereg(local);
    dereg(remote);
    munmap(p, 8 * PAGE);
    munmap(q, 8 * PAGE);
}

static void registrations_that_overlap(void **state)
{
    struct fix *f = *state;
    static const struct {
        uint32_t off, len;
    } part[4] = {{0, 16 * PAGE}, {3 * PAGE + 40, 5 * PAGE}, {7 * PAGE, 12 * PAGE}, {3 * PAGE + 40, 5 * PAGE}};

    for (unsigned order = 0; order < 24; order++) {
        struct dock_mr *mr[4];
        char *p = map_pages(20);
        unsigned left[4] = {0, 1, 2, 3}, o = order;
        memset(p, 1, 20 * PAGE);
        for (unsigned i = 0; i < 4; i++)
            mr[i] = reg(f, p + part[(i + order) % 4].off, part[(i + order) % 4].len);
        for (unsigned n = 4; n; n--) {
            unsigned at = o % n, which = left[at];
            o /= n;
            for (unsigned i = 0; i < 4; i++)
                if (mr[i])
                    exercise(f, mr[i], (char *)(uintptr_t)mr[i]->addr, (uint32_t)mr[i]->len, order * 16 + n);
            dereg(mr[which]);
            mr[which] = NULL;
            left[at] = left[n - 1];
        }
        assert_int_equal(maps_look(p, 20 * PAGE).private_anon, 20 * PAGE);
        assert_int_equal(adopted_now(f), 0);
        munmap(p, 20 * PAGE);
    }
}

// A word at an edge is plain until another registration covers its page: its atomics stay one sequence.
static void a_page_that_is_adopted_later(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(4);
    struct dock_mr *edge = reg(f, p + PAGE + 64, 128), *all;

    *(uint64_t *)(void *)(p + PAGE + 64) = 5;
    exercise(f, edge, p + PAGE + 64, 128, 4);
    assert_true(fallbacks(f) > 0);
    all = reg(f, p, 4 * PAGE);
    uint64_t before = fallbacks(f);
    exercise(f, edge, p + PAGE + 64, 128, 5);
    assert_int_equal(fallbacks(f), before);
    dereg(all);
    exercise(f, edge, p + PAGE + 64, 128, 6);
    assert_int_equal(maps_look(p, 4 * PAGE).adopted, PAGE); // still held by the small one
    dereg(edge);
    assert_int_equal(maps_look(p, 4 * PAGE).private_anon, 4 * PAGE);
    munmap(p, 4 * PAGE);
}

// As dock_mr_deregister leaves it while another registration, under the adoption lock, makes it wait.
static void a_key_that_was_taken_away_stays_so(void **state)
{
    struct fix *f = *state;
    struct dock_dev *dev = f->devs[1];
    char *p = map_pages(4);

    memset(p, 1, 4 * PAGE);
    struct dock_mr *going = reg(f, p + 100, 200);
    pthread_mutex_lock(&dev->lock);
    dock_lkey_clear(dev, going);
    dock_segrec_clear(dev, going->tid);
    pthread_mutex_unlock(&dev->lock);
    struct dock_mr *all = reg(f, p, 4 * PAGE);
    assert_int_equal(going->hold.pieces, 1); // it was told of the page
    assert_int_equal(dock_peek64(&dev->lkeys[going->tid].name), 0);
    assert_int_equal(dock_peek64(&dev->segments[going->tid].generation) & 1, 1);
    dereg(going);
    exercise(f, all, p, 4 * PAGE, 31);
    dereg(all);
    munmap(p, 4 * PAGE);
}

// One who looked just before maps the segment when its keys have gone, and somebody adopts: what stays
// registered gets its keys back after that, and none that a peer has taken away.
#define LATE 63u // a hazard that nobody has

static struct late {
    struct dock_dev *dev;
    struct dock_mr *mr;
    pthread_t adopter;
    _Atomic bool adopting;
    bool before; // the keys came back while the lock was held
} late;

static void *adopts_for_a_while(void *arg)
{
    (void)arg;
    dock_adopt_lock();
    atomic_store(&late.adopting, true);
    usleep(30000);
    late.before = dock_peek64(&late.dev->lkeys[late.mr->tid].name) != 0;
    dock_adopt_unlock();
    return NULL;
}

static struct dock_hazard *mapping(void)
{
    return &late.dev->hazards[LATE];
}

static void is_mapped_late(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)sequence;
    if (at != DOCK_AT_DEREGISTER || object != late.mr->tid)
        return;
    dock_probe_hook = NULL;
    dock_set64(&mapping()->owner, (uint64_t)late.dev->waiter.me << 32);
    dock_set32(&mapping()->mapped, late.mr->tid);
    assert_int_equal(pthread_create(&late.adopter, NULL, adopts_for_a_while, NULL), 0);
    while (!atomic_load(&late.adopting))
        sched_yield();
}

static void refused_for_a_late_mapping(struct fix *f, struct dock_mr *mr)
{
    late = (struct late){.dev = f->devs[1], .mr = mr};
    assert_true(dock_peek32(&late.dev->port->hazard_high) <= LATE + 1);
    dock_set32(&late.dev->port->hazard_high, LATE + 1);
    dock_probe_hook = is_mapped_late;
    assert_true(
        dock_lkey_found(&late.dev->lkeys[mr->tid], dock_lkey_name(mr->pd, mr->lkey))); // by who maps it
    assert_int_equal(dock_mr_deregister(mr), -EBUSY);
    assert_int_equal(pthread_join(late.adopter, NULL), 0);
    assert_false(late.before);
    dock_set32(&mapping()->mapped, 0);
    dock_set64(&mapping()->owner, 0);
}

static void what_cannot_be_taken_away_gets_its_keys_back(void **state)
{
    struct fix *f = *state;
    const struct dock_segrec *rec = f->devs[1]->segments;
    char *p = map_pages(4);
    struct dock_mr *mr = reg(f, p, 4 * PAGE);

    refused_for_a_late_mapping(f, mr);
    exercise(f, mr, p, 4 * PAGE, 32);
    pthread_mutex_lock(&f->devs[1]->lock);
    dock_segrec_clear(f->devs[1], mr->tid); // a peer invalidates it
    pthread_mutex_unlock(&f->devs[1]->lock);
    refused_for_a_late_mapping(f, mr);
    assert_int_equal(dock_peek64(&rec[mr->tid].generation) & 1, 1);
    assert_int_equal((uint32_t)dock_peek64(&f->devs[1]->lkeys[mr->tid].name), mr->lkey);
    dereg(mr);
    munmap(p, 4 * PAGE);
}

static void read_only_memory(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(4);
    struct dock_mr *mr;

    memset(p, 3, 4 * PAGE);
    mprotect(p, 4 * PAGE, PROT_READ);
    assert_int_equal(dock_mr_register(f->devs[1], f->b.pd, (uintptr_t)p, 4 * PAGE, (uintptr_t)p, RIGHTS, &mr),
                     -EFAULT);
    assert_int_equal(maps_look(p, 4 * PAGE).adopted, 0);
    assert_int_equal(dock_mr_register(f->devs[1], f->b.pd, (uintptr_t)p, 4 * PAGE, (uintptr_t)p,
                                      DOCK_ACCESS_REMOTE_READ, &mr),
                     0);
    assert_int_equal(maps_look(p, 4 * PAGE).adopted, 4 * PAGE);
    run(f, DOCK_OP_READ, mr, p, 4 * PAGE);
    assert_memory_equal(f->a.mem, p, 4 * PAGE);
    dereg(mr);
    assert_int_equal(p[PAGE], 3);
    assert_int_not_equal(mprotect(p, PAGE, PROT_READ | PROT_WRITE), -1);
    munmap(p, 4 * PAGE);
}

// Anonymous, of a file, read-only, not mapped: each part as it can be.
static void a_region_of_many_mappings(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(16);
    int fd = open("/proc/self/exe", O_RDONLY);
    struct dock_mr *mr;

    assert_ptr_equal(mmap(p + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0),
                     p + 4 * PAGE);
    close(fd);
    mr = reg(f, p + 10, 15 * PAGE);
    assert_int_equal(maps_look(p, 16 * PAGE).adopted, 10 * PAGE);
    assert_true(dock_peek64(&f->devs[1]->port->adopt.refused[DOCK_WHY_KIND]) > 0);
    exercise(f, mr, p + 10, 15 * PAGE, 12);
    dereg(mr);
    munmap(p + 8 * PAGE, PAGE);
    assert_int_equal(
        dock_mr_register(f->devs[1], f->b.pd, (uintptr_t)p, 16 * PAGE, (uintptr_t)p, RIGHTS, &mr), -EFAULT);
    assert_int_equal(maps_look(p, 16 * PAGE).adopted, 0);
    munmap(p, 16 * PAGE);
}

// The device's view lives while it is registered, and nothing of it comes back over what took its place.
static void memory_unmapped_while_registered(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(8), *q;
    struct dock_mr *old = reg(f, p, 8 * PAGE), *new;

    munmap(p, 8 * PAGE);
    bytes_fill(f->a.mem, 8 * PAGE, 31);
    run(f, DOCK_OP_WRITE, old, p, 8 * PAGE);
    memset(f->a.mem, 0, 8 * PAGE);
    run(f, DOCK_OP_READ, old, p, 8 * PAGE);
    assert_int_equal(bytes_sum(f->a.mem, 8 * PAGE),
                     (bytes_fill(f->b.mem, 8 * PAGE, 31), bytes_sum(f->b.mem, 8 * PAGE)));
    q = mmap(p, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(q, p);
    new = reg(f, q, 8 * PAGE);
    exercise(f, new, q, 8 * PAGE, 32);
    uint64_t sum = bytes_sum(q, 8 * PAGE);
    dereg(old);
    assert_int_equal(bytes_sum(q, 8 * PAGE), sum);
    exercise(f, new, q, 8 * PAGE, 33);
    dereg(new);
    assert_int_equal(maps_look(q, 8 * PAGE).private_anon, 8 * PAGE);
    munmap(q, 8 * PAGE);
}

// The program puts other memory in the place of a page and registers that, too: the older key leads to what
// it was given for, at the beginning of a piece and inside of one.
static void a_key_does_not_reach_what_came_later(void **state)
{
    struct fix *f = *state;

    for (unsigned page = 0; page < 3; page++) {
        char *p = map_pages(8), *at = p + page * PAGE;
        memset(p, 1, 8 * PAGE);
        struct dock_mr *older = reg(f, p, 4 * PAGE);
        assert_ptr_equal(
            mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
        memset(at, 2, PAGE);
        struct dock_mr *newer = reg(f, at, PAGE);
        memset(f->a.mem, 3, PAGE);
        run(f, DOCK_OP_WRITE, older, at, PAGE);
        for (unsigned i = 0; i < PAGE; i++)
            assert_int_equal(at[i], 2);
        exercise(f, newer, at, PAGE, page);
        uint64_t sum = bytes_sum(at, PAGE);
        run(f, DOCK_OP_READ, older, at, PAGE);
        assert_int_equal(f->a.mem[0], 3);
        assert_int_equal(f->a.mem[PAGE - 1], 3);
        dereg(page & 1 ? older : newer);
        assert_int_equal(bytes_sum(at, PAGE), sum);
        dereg(page & 1 ? newer : older);
        assert_int_equal(bytes_sum(at, PAGE), sum);
        assert_int_equal(maps_look(p, 8 * PAGE).private_anon, 8 * PAGE);
        munmap(p, 8 * PAGE);
    }
}

// mremap takes the pages along: wherever they are when the last registration goes, the program keeps them.
static void memory_moved_while_registered(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(8), *to = map_pages(8), *q;
    struct dock_mr *mr = reg(f, p, 8 * PAGE);

    bytes_fill(p, 8 * PAGE, 41);
    uint64_t sum = bytes_sum(p, 8 * PAGE);
    q = mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    assert_ptr_equal(q, to);
    dereg(mr);
    assert_int_equal(bytes_sum(q, 8 * PAGE), sum);
    assert_int_equal(maps_look(q, 8 * PAGE).private_anon, 8 * PAGE);
    munmap(q, 8 * PAGE);
}

static void neighbours_become_one_mapping(void **state)
{
    struct fix *f = *state;
    enum { N = 64 };
    char *p = map_pages(N);
    struct dock_mr *mr[N];

    for (unsigned i = 0; i < N; i++)
        mr[i * 37 % N] = reg(f, p + i * 37 % N * PAGE, PAGE);
    assert_int_equal(maps_look(p, N * PAGE).mappings, 1);
    assert_int_equal(maps_look(p, N * PAGE).adopted, N * PAGE);
    for (unsigned i = 0; i < N; i++)
        exercise(f, mr[i], p + i * PAGE, PAGE, i);
    for (unsigned i = 0; i < N; i++)
        dereg(mr[i]);
    assert_int_equal(maps_look(p, N * PAGE).mappings, 1);
    assert_int_equal(maps_look(p, N * PAGE).private_anon, N * PAGE);
    munmap(p, N * PAGE);
}

static void the_stack_stays_where_it_is(void **state)
{
    struct fix *f = *state;
    char room[8 * PAGE];
#ifdef __SANITIZE_ADDRESS__
    skip(); // its stack frames lie in mappings like any other
#endif
    struct dock_mr *mr = reg(f, room, sizeof room);

    assert_int_equal(maps_look(room, sizeof room).adopted, 0);
    exercise(f, mr, room, sizeof room, 51);
    dereg(mr);
}

// Below a thread's control block, of which it becomes one mapping if there is room: so before anything else
// is mapped.
#define BESIDE (512 * PAGE)
static char *beside;

static void map_beside_control_block(void)
{
    char *at = (char *)((uintptr_t)__builtin_thread_pointer() & ~(uintptr_t)(PAGE - 1)) - BESIDE;

    for (unsigned i = 0; i < 16 && !beside; i++, at -= PAGE)
        if (mmap(at, BESIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                 0) == at)
            beside = at;
}

// Such memory moves, all but a few pages of it.
static void beside_a_control_block(void **state)
{
    struct fix *f = *state;

    if (!beside)
        skip(); // other mappings are there
    struct dock_mr *mr = reg(f, beside, BESIDE);
    assert_true(maps_look(beside, BESIDE).adopted >= BESIDE - 4 * PAGE);
    exercise(f, mr, beside, (uint32_t)(64 * PAGE), 55);
    exercise(f, mr, beside + BESIDE - 64 * PAGE, (uint32_t)(64 * PAGE), 56);
    dereg(mr);
    assert_int_equal(maps_look(beside, BESIDE).private_anon, BESIDE);
    munmap(beside, BESIDE);
}

// The kernel may hold the old pages for an operation under way.
static void not_beside_io_uring(void **state)
{
    struct fix *f = *state;
    char *p = map_pages(4), params[256] = {0};
    int ring = (int)syscall(425, 4, params);

    if (ring < 0)
        skip();
    uint64_t before = dock_peek64(&f->devs[1]->port->adopt.refused[DOCK_WHY_PINNED]);
    struct dock_mr *mr = reg(f, p, 4 * PAGE);
    assert_int_equal(maps_look(p, 4 * PAGE).adopted, 0);
    assert_int_equal(dock_peek64(&f->devs[1]->port->adopt.refused[DOCK_WHY_PINNED]), before + 1);
    exercise(f, mr, p, 4 * PAGE, 61);
    close(ring);
    dereg(mr);
    // And what was adopted before it was opened stays until it is closed.
    mr = reg(f, p, 4 * PAGE);
    assert_int_equal(maps_look(p, 4 * PAGE).adopted, 4 * PAGE);
    ring = (int)syscall(425, 4, params);
    bytes_fill(p, 4 * PAGE, 62);
    uint64_t sum = bytes_sum(p, 4 * PAGE);
    dereg(mr);
    assert_int_equal(bytes_sum(p, 4 * PAGE), sum);
    assert_int_equal(maps_look(p, 4 * PAGE).adopted, 4 * PAGE);
    close(ring);
    mr = reg(f, p, 4 * PAGE); // meets them where they are
    exercise(f, mr, p, 4 * PAGE, 63);
    dereg(mr);
    assert_int_equal(maps_look(p, 4 * PAGE).private_anon, 4 * PAGE);
    munmap(p, 4 * PAGE);
}

static void a_big_region(void **state)
{
    struct fix *f = *state;
    size_t len = 64u << 20;
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; i < len; i += PAGE)
        *(size_t *)(void *)(p + i) = i;
    struct dock_mr *mr = reg(f, p + 1, len - 2);
    if (maps_look(p, len).adopted != len - 2 * PAGE) // which reason, if not all of it moved
        for (int i = 1; i < DOCK_WHYS; i++)
            print_message("not adopted, %s: %d ranges\n", dock_adopt_why_name[i],
                          (int)dock_peek64(&f->devs[1]->port->adopt.refused[i]));
    assert_int_equal(maps_look(p, len).adopted, len - 2 * PAGE);
    for (size_t i = 0; i < len; i += PAGE)
        assert_int_equal(*(size_t *)(void *)(p + i), i);
    exercise(f, mr, p + len / 2 - 100000, 500000, 71);
    struct dock_mr *again = reg(f, p + PAGE, len - 2 * PAGE); // finds it adopted, over a window's end
    for (size_t i = PAGE; i + 4 * PAGE < len; i += 2u << 20)
        exercise(f, again, p + i, 2 * PAGE, i);
    dereg(mr);
    dereg(again);
    assert_int_equal(maps_look(p, len).private_anon, len);
    assert_int_equal(adopted_now(f), 0);
    munmap(p, len);
}

// ---- while memory moves the caller handles no signal, whoever sends it

static dock_a64 handled, handled_in_a_move;

static void note_signal(int signal)
{
    (void)signal;
    dock_count64(&handled, 1);
    if (dock_proc_is(dock_proc_kept(DOCK_PROC_MAPS))) // everything stands still
        dock_count64(&handled_in_a_move, 1);
}

static const int sent[] = {SIGUSR1, SIGSEGV, SIGBUS, SIGTRAP, SIGFPE, SIGILL, SIGSYS};

// Until it is killed.
static int send_signals(void *arg)
{
    pid_t *to = arg;

    for (unsigned i = 0;; i++)
        syscall(SYS_tgkill, to[0], to[1], sent[i % (sizeof sent / sizeof *sent)]);
    return 0;
}

static void no_signal_is_handled_in_a_move(void **state)
{
    struct fix *f = *state;
    pid_t to[] = {getpid(), gettid()};
    struct sigaction act = {.sa_handler = note_signal, .sa_flags = SA_RESTART}, was[64];
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_mr *mr;
    int status;

    assert_ptr_not_equal(p, MAP_FAILED);
    *p = 1;

    sigfillset(&act.sa_mask);
    for (unsigned i = 0; i < sizeof sent / sizeof *sent; i++)
        sigaction(sent[i], &act, &was[sent[i]]);
    pid_t sender = test_fork(send_signals, to);
    for (unsigned i = 0; i < 200000 && (i < 300 || dock_peek64(&handled) < 3000); i++) {
        assert_int_equal(dock_mr_register(f->b.dev, f->b.pd, (uintptr_t)p, PAGE, (uintptr_t)p, RIGHTS, &mr),
                         0);
        assert_int_equal(dock_mr_deregister(mr), 0);
    }
    kill(sender, SIGKILL);
    waitpid(sender, &status, 0);
    for (unsigned i = 0; i < sizeof sent / sizeof *sent; i++)
        sigaction(sent[i], &was[sent[i]], NULL);
    assert_true(dock_peek64(&handled) > 0);
    assert_int_equal(dock_peek64(&handled_in_a_move), 0);
    munmap(p, PAGE);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings and threads of its own, which do not stand
        return 77;
    map_beside_control_block();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_memory_is_reached_by_stores),
        cmocka_unit_test(edges_go_through_the_kernel),
        cmocka_unit_test(local_buffers_in_pieces),
        cmocka_unit_test(registrations_that_overlap),
        cmocka_unit_test(a_page_that_is_adopted_later),
        cmocka_unit_test(a_key_that_was_taken_away_stays_so),
        cmocka_unit_test(what_cannot_be_taken_away_gets_its_keys_back),
        cmocka_unit_test(read_only_memory),
        cmocka_unit_test(a_region_of_many_mappings),
        cmocka_unit_test(memory_unmapped_while_registered),
        cmocka_unit_test(a_key_does_not_reach_what_came_later),
        cmocka_unit_test(memory_moved_while_registered),
        cmocka_unit_test(neighbours_become_one_mapping),
        cmocka_unit_test(the_stack_stays_where_it_is),
        cmocka_unit_test(beside_a_control_block),
        cmocka_unit_test(not_beside_io_uring),
        cmocka_unit_test(a_big_region),
        cmocka_unit_test(no_signal_is_handled_in_a_move),
    };

    return cmocka_run_group_tests_name("adopted memory", tests, set_up, tear_down);
}
