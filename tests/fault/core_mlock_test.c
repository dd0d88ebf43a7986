// SPDX-License-Identifier: MIT
// A process that has a peer's arena mapped dumps core, or locks its memory: it stays fast, the core stays
// small, and the holes of the arenas are not filled.
// timeout: 120
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/fork.h"
#include "lib/pair.h"

#define MIB 1048576.0
#define SMALL_MIB 24.0 // what an arena or a core may grow by
#define FAST_MS 3000.0
#define SKIPPED 77

enum deed { DUMP, LOCK_FUTURE, LOCK_CURRENT, DEEDS };

static const char *const name[DEEDS] = {"core dump", "mlockall(MCL_FUTURE)", "mlockall(MCL_CURRENT)"};

struct board {
    dock_a32 described[2], connected, stop, skipped;
    uint32_t qp[2], rkey;
    uint64_t addr;
    dock_a64 peer_blocks;
    double own_grown, peer_grown, ms; // MiB
    enum deed deed;
};

static struct board *board;

static uint64_t blocks_of(struct dock_dev *dev)
{
    struct stat st;

    return fstat(dev->arena.view.fd, &st) ? 0 : (uint64_t)st.st_blocks;
}

static void await(dock_a32 *word)
{
    while (!dock_acquire32(word))
        test_nap_us(100);
}

static struct dock_dev *open_side(struct end *e, unsigned me)
{
    struct end_opts o = {0};
    struct dock_dev *dev;

    if (dock_dev_open(NULL, &dev))
        _exit(2);
    end_open(e, dev, &o);
    board->qp[me] = dock_qp_number(e->qp);
    if (me == 1) {
        board->rkey = e->mr->rkey;
        board->addr = (uintptr_t)e->mem;
    }
    dock_publish32(&board->described[me], 1);
    await(&board->described[!me]);
    end_connect(e, board->qp[!me], NULL);
    atomic_fetch_add(&board->connected, 1);
    while (dock_acquire32(&board->connected) < 2)
        test_nap_us(100);
    return dev;
}

// The peer only tells how many blocks its arena has.
static int peer(void *arg)
{
    struct end e;
    struct dock_dev *dev = open_side(&e, 1);

    (void)arg;
    while (!dock_acquire32(&board->stop)) {
        dock_set64(&board->peer_blocks, blocks_of(dev));
        test_nap_us(200);
    }
    return 0;
}

static void write_to_peer(struct end *e)
{
    struct dock_mr remote = {.rkey = board->rkey};
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, e, &sge, 0, 8, &remote, board->addr);
    struct dock_wc wc;

    if (end_post(e, &wr) || !end_wait(e->scq, &wc, 5000) || wc.status)
        _exit(3);
}

// A limit that holds for what is mapped from now on shows when it is.
static bool locks(int how)
{
    size_t room = (size_t)(4 * SMALL_MIB * MIB);
    void *probe;

    if (mlockall(how))
        return false;
    probe = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe != MAP_FAILED && munmap(probe, room) == 0;
}

static void lock_memory(int how)
{
    if (how == MCL_FUTURE ? locks(how) : mlockall(how) == 0)
        return;
    dock_set32(&board->skipped, 1);
    _exit(0);
}

static int doer(void *arg)
{
    struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY};
    struct end e;

    (void)arg;
    uint64_t begin = dock_now_ns();
    if (board->deed == LOCK_FUTURE)
        lock_memory(MCL_FUTURE);
    struct dock_dev *dev = open_side(&e, 0);
    write_to_peer(&e);
    test_nap_us(2000);
    uint64_t own = blocks_of(dev), theirs = dock_peek64(&board->peer_blocks);
    if (board->deed != LOCK_FUTURE)
        begin = dock_now_ns();
    if (board->deed == DUMP) {
        if (setrlimit(RLIMIT_CORE, &core)) {
            dock_set32(&board->skipped, 1);
            _exit(0);
        }
        dock_set64(&board->peer_blocks, theirs);
        abort();
    }
    if (board->deed == LOCK_CURRENT)
        lock_memory(MCL_CURRENT);
    board->ms = (double)(dock_now_ns() - begin) / 1e6;
    test_nap_us(2000);
    board->own_grown = (double)(blocks_of(dev) - (board->deed == LOCK_CURRENT ? own : 0)) * 512 / MIB;
    board->peer_grown =
        (double)(dock_peek64(&board->peer_blocks) - (board->deed == LOCK_CURRENT ? theirs : 0)) * 512 / MIB;
    write_to_peer(&e);
    munlockall();
    end_close(&e);
    return dock_dev_close(dev) != 0;
}

static int wrong(const char *what, double expected, double got)
{
    printf("FAILED %s: %s: expected at most %.1f, got %.1f\n  again: scripts/run-one "
           "build/dev/tests/fault/core_mlock_test\n",
           name[board->deed], what, expected, got);
    return 1;
}

// MiB on the disk of the file that the kernel wrote into this directory; -1 if it went elsewhere.
static double core_mib(pid_t pid)
{
    char with_pid[32];
    struct stat st;

    snprintf(with_pid, sizeof with_pid, "core.%d", (int)pid);
    if (stat("core", &st) && stat(with_pid, &st))
        return -1;
    unlink("core");
    unlink(with_pid);
    return (double)st.st_blocks * 512 / MIB;
}

static int not_seen(const char *why)
{
    printf("skipped: %s: %s\n", name[board->deed], why);
    return SKIPPED;
}

static int check(enum deed d, pid_t pid, int status)
{
    double core = d == DUMP ? core_mib(pid) : 0;
    int bad = 0;

    if (dock_peek32(&board->skipped))
        return not_seen("not allowed here");
    printf("%s: %.1f ms, own arena %.1f MiB, the peer's %.1f MiB", name[d], board->ms, board->own_grown,
           board->peer_grown);
    printf(d == DUMP ? ", core %.1f MiB\n" : "\n", core);
    if (d != DUMP && status)
        bad |= wrong("exit status", 0, status);
    if (core > SMALL_MIB)
        bad |= wrong("MiB of core", SMALL_MIB, core);
    if (board->ms > FAST_MS * test_slow())
        bad |= wrong("ms", FAST_MS * test_slow(), board->ms);
    if (board->own_grown > SMALL_MIB)
        bad |= wrong("MiB of our arena", SMALL_MIB, board->own_grown);
    if (board->peer_grown > SMALL_MIB)
        bad |= wrong("MiB of the peer's arena", SMALL_MIB, board->peer_grown);
    return !bad && core < 0 ? not_seen("the kernel's core_pattern sends cores elsewhere") : bad;
}

static int run(enum deed d)
{
    int status = 0;

    memset(board, 0, sizeof *board);
    board->deed = d;
    pid_t p = test_fork(peer, NULL), doing = test_fork(doer, NULL);
    uint64_t begin = 0;
    enum test_end end = TEST_RUNS;
    while (end == TEST_RUNS) {
        if (!begin && dock_acquire32(&board->connected) == 2)
            begin = dock_now_ns();
        end = test_await(doing, &status, 1);
        if (begin && dock_now_ns() - begin > 60000000000ull) {
            test_kill(doing);
            test_kill(p);
            return wrong("s until it ended", 60, 61);
        }
    }
    if (d == DUMP) {
        board->ms = (double)(dock_now_ns() - begin) / 1e6;
        test_nap_us(2000);
        board->peer_grown = (double)dock_peek64(&board->peer_blocks) * 512 / MIB;
    }
    dock_publish32(&board->stop, 1);
    if (!begin) // it waits for one that is gone
        test_kill(p);
    else
        waitpid(p, NULL, 0);
    return check(d, doing, status);
}

int main(void)
{
    const char *dir = getenv("DRYDOCK_DIR");
    int bad = 0, skipped = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!dir || chdir(dir)) // where a core may lie
        return 77;
    board = test_shared(sizeof *board);
    for (enum deed d = DUMP; d < DEEDS; d++) {
        int end = run(d);
        if (end == SKIPPED)
            skipped = SKIPPED;
        else
            bad |= end;
    }
    return bad ? bad : skipped;
}
