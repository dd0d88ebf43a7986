// SPDX-License-Identifier: MIT
// Deregistering a key that nobody ever looked up waits for nobody: no fence runs. One that was found, by whom
// and in whatever way, is fenced. A seccomp filter ends the process at the fence's system call.
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/internal.h"
#include "lib/filter.h"
#include "lib/pair.h"

struct world {
    struct dock_dev *dev;
    struct end a, b;
    struct dock_mr *mr; // over the first page of a's memory, under keys of its own
};

static void post(struct world *w, uint8_t op, struct dock_sge sge, const struct dock_mr *remote, void *at)
{
    struct dock_wr wr = {.op = op,
                         .nsge = 1,
                         .sge = &sge,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = remote->rkey,
                         .token = remote->token,
                         .raddr = (uintptr_t)at};
    struct dock_wc wc = {0};

    if (end_post(&w->a, &wr) || !end_wait(w->a.scq, &wc, 10000) || wc.status)
        _exit(3);
}

static struct dock_sge source(const struct world *w, const struct dock_mr *mr)
{
    return (struct dock_sge){.addr = (uintptr_t)w->a.mem, .len = 8, .key = mr->lkey};
}

static void nobody(struct world *w)
{
    (void)w;
}

// With everything at hand but the key of the source: it is looked up by the short way.
static void own_write(struct world *w)
{
    post(w, DOCK_OP_WRITE, source(w, w->a.mr), w->b.mr, w->b.mem);
    post(w, DOCK_OP_WRITE, source(w, w->a.mr), w->b.mr, w->b.mem);
    post(w, DOCK_OP_WRITE, source(w, w->mr), w->b.mr, w->b.mem);
}

static void own_read(struct world *w)
{
    post(w, DOCK_OP_READ, source(w, w->mr), w->b.mr, w->b.mem);
}

static void a_peer(struct world *w)
{
    struct dock_sge from = {.addr = (uintptr_t)w->b.mem, .len = 8, .key = w->b.mr->lkey};
    struct dock_wr wr = {.op = DOCK_OP_WRITE,
                         .nsge = 1,
                         .sge = &from,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = w->mr->rkey,
                         .token = w->mr->token,
                         .raddr = (uintptr_t)w->a.mem};
    struct dock_wc wc = {0};

    if (end_post(&w->b, &wr) || !end_wait(w->b.scq, &wc, 10000) || wc.status)
        _exit(3);
}

// The key of a receive is looked up by who sends to it.
static void a_sender(struct world *w)
{
    struct dock_sge to = source(w, w->mr),
                    from = {.addr = (uintptr_t)w->b.mem, .len = 8, .key = w->b.mr->lkey};
    struct dock_wr wr = {.op = DOCK_OP_SEND, .nsge = 1, .sge = &from, .flags = DOCK_F_COMPLETE};
    struct dock_wc wc = {0};

    dock_recv_begin(dock_qp_rq(w->a.qp));
    if (dock_recv_put(dock_qp_rq(w->a.qp), 1, &to, 1))
        _exit(3);
    dock_recv_end(dock_qp_rq(w->a.qp));
    if (end_post(&w->b, &wr) || !end_wait(w->b.scq, &wc, 10000) || wc.status)
        _exit(3);
}

static void register_page(struct world *w)
{
    uint32_t all = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_READ;

    if (dock_mr_register(w->dev, w->a.pd, (uintptr_t)w->a.mem, 4096, (uintptr_t)w->a.mem, all, &w->mr))
        _exit(3);
}

static void forbid_the_fence(void)
{
    if (filter_call(SYS_membarrier, SECCOMP_RET_KILL_PROCESS, 0))
        _exit(77);
}

// true: the fence ran.
static bool fences(void (*find)(struct world *))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct dock_config cfg = {.no_engine_thread = true};
        struct end_opts o = {0};
        struct world w;
        if (dock_dev_open(&cfg, &w.dev))
            _exit(3);
        end_open(&w.a, w.dev, &o);
        end_open(&w.b, w.dev, &o);
        pair_connect(&w.a, &w.b);
        own_read(&(struct world){.dev = w.dev, .a = w.a, .b = w.b, .mr = w.a.mr});
        if (!dock_peek32(&dock_fence_asymmetric))
            _exit(77);
        register_page(&w);
        if (dock_mr_deregister(w.mr)) // what the number had before does not count
            _exit(3);
        register_page(&w);
        find(&w);
        forbid_the_fence();
        _exit(dock_mr_deregister(w.mr) ? 3 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGSYS);
        return true;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static void a_key_that_nobody_found_is_not_fenced(void **state)
{
    (void)state;
    assert_false(fences(nobody));
}

static void a_key_that_was_found_is(void **state)
{
    (void)state;
    assert_true(fences(own_write));
    assert_true(fences(own_read));
    assert_true(fences(a_peer));
    assert_true(fences(a_sender));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_nobody_found_is_not_fenced),
        cmocka_unit_test(a_key_that_was_found_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
