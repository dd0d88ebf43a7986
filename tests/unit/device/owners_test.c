// SPDX-License-Identifier: MIT
// Memory that several processes share, each of which has registered it: one word under the keys of several
// owners, at an address of each one's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"

#define OWNERS 2u
#define ADDS 4000u
#define BYTES 8192u
#define WORD 4160u // not of the first page, so that a page's place and an address's differ

static struct shared {
    dock_a32 ready, go;
    int fd;
} * shared;

static void add(struct end *e, const struct dock_mr *mr, uint64_t word)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_FADD, e, &sge, 0, 8, mr, word);
    struct dock_wc wc;

    wr.operand = 1;
    if (end_post(e, &wr) || !end_wait(e->scq, &wc, 30000) || wc.status)
        _exit(2);
}

// An owner that is its own initiator too.
static int owner(void *arg)
{
    char *mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
    uint32_t rights = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_ATOMIC;
    struct dock_dev *dev;
    struct dock_mr *mr;
    struct end e;

    (void)arg;
    if (mem == MAP_FAILED || dock_dev_open(NULL, &dev))
        return 3;
    end_open(&e, dev, &(struct end_opts){.mem = 4096});
    if (dock_mr_register(dev, e.pd, (uintptr_t)mem, BYTES, (uintptr_t)mem, rights, &mr))
        return 4;
    end_connect(&e, dock_qp_number(e.qp), NULL);
    atomic_fetch_add(&shared->ready, 1);
    while (!dock_acquire32(&shared->go))
        test_nap_us(50);
    for (unsigned i = 0; i < ADDS; i++)
        add(&e, mr, (uintptr_t)mem + WORD);
    return 0;
}

static void atomics_under_the_keys_of_two_owners_are_atomic(void **state)
{
    pid_t pid[OWNERS];
    uint64_t sum;
    int status;

    (void)state;
    if (!place_possible(HOST_PLAIN))
        skip();
    shared = test_shared(sizeof *shared);
    shared->fd = memfd_create("owners", MFD_CLOEXEC);
    assert_int_equal(ftruncate(shared->fd, BYTES), 0);
    for (unsigned i = 0; i < OWNERS; i++)
        pid[i] = test_fork(owner, NULL);
    for (unsigned ms = 0; ms < 30000 * slow_down() && dock_acquire32(&shared->ready) < OWNERS; ms++)
        test_nap_us(1000);
    dock_publish32(&shared->go, 1);
    for (unsigned i = 0; i < OWNERS; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(pread(shared->fd, &sum, sizeof sum, WORD), sizeof sum);
    assert_int_equal(sum, OWNERS * ADDS);
    close(shared->fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atomics_under_the_keys_of_two_owners_are_atomic),
    };

    return cmocka_run_group_tests_name("shared memory with several owners", tests, NULL, NULL);
}
