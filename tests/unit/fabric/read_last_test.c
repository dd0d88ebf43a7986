// SPDX-License-Identifier: MIT
// A READ on the host's own path looks after its queue's earlier WRITEs are seen by all: else two queues that
// WRITE a word each and READ the other's may both find the state before. Which of them do is the processor's
// mood, so what is seen here is the instruction that forbids it: a child is led step by step from the moment
// when the WRITE's bytes are there to the one when the READ's are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fork.h"
#include "lib/pair.h"

#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    printf("skipped: instructions are told apart on x86-64 alone, and ThreadSanitizer adds its own\n");
    return 77;
}
#else
#define STEPS 100000u
#define RESULT 8192u
#define FRESH 0x5ea5u // in the word that the READ reads
#define ROUNDS 3u     // the last is led; before it ways and keys are found

struct row {
    const char *what;
    uint32_t len, pieces;
};

// Those that no atomic of the device's own orders: a message's claim of its receive and a CQE are locked.
static const struct row rows[] = {
    {"a WRITE of a word, the straight way", 8, 1},
    {"a WRITE of a page, the straight way", 4096, 1},
    {"a WRITE of two pieces, the long way", 16, 2},
};

struct led {
    const struct row *row;
    const uint64_t *landed, *result;
};

static struct led *led; // shared with the child

// The WRITE and the READ in one list: the doorbell's locked instruction is not between them.
static int post_both(struct end *a, struct end *b, uint64_t value)
{
    const struct row *r = led->row;
    struct dock_sge s[3];
    uintptr_t there = (uintptr_t)b->mem;
    uint32_t each = r->len / r->pieces;
    struct dock_wr wr[2] = {wr_onesided(DOCK_OP_WRITE, a, &s[0], 0, each, b->mr, there),
                            wr_onesided(DOCK_OP_READ, a, &s[2], RESULT, 8, b->mr, there + RESULT)};
    struct dock_post post;
    int err = 0;

    s[1] = (struct dock_sge){s[0].addr + each, each, s[0].key};
    wr[0].nsge = r->pieces;
    wr[0].flags = 0;
    memcpy(a->mem + r->len - 8, &value, 8);
    memset(a->mem + RESULT, 0, 8);
    if (value == ROUNDS)
        raise(SIGSTOP);
    dock_post_begin(a->qp, &post);
    for (unsigned i = 0; i < 2 && !err; i++)
        err = dock_post_put(&post, &wr[i]);
    dock_post_end(&post);
    return err;
}

static int child(void *arg)
{
    struct end_opts o = {.mem = 16384};
    struct dock_dev *dev[2];
    struct end a, b;
    struct dock_wc wc;
    uint64_t fresh = FRESH;

    (void)arg;
    for (unsigned i = 0; i < 2; i++)
        if (dock_dev_open(NULL, &dev[i]))
            return 1;
    end_open(&a, dev[0], &o);
    end_open(&b, dev[1], &o);
    pair_connect(&a, &b);
    memcpy(b.mem + RESULT, &fresh, 8);
    led->landed = (uint64_t *)(void *)(b.mem + led->row->len - 8);
    led->result = (uint64_t *)(void *)(a.mem + RESULT);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        return 77;
    for (uint64_t round = 1; round <= ROUNDS; round++)
        if (post_both(&a, &b, round) || !end_wait(a.scq, &wc, 5000) || wc.status)
            return 2;
    return 0;
}

// Does the instruction wait until all stores before it are seen? A locked one, an exchange with memory,
// mfence.
static bool orders(const uint8_t *code)
{
    while (*code && strchr("\x66\x67\x2e\x3e\x26\x36\x64\x65\xf2\xf3", *code))
        code++;
    if (*code == 0xf0)
        return true;
    code += (*code & 0xf0) == 0x40;
    return (*code >> 1 == 0x86 >> 1 && code[1] < 0xc0) || !memcmp(code, "\x0f\xae\xf0", 3);
}

static uint64_t peek(pid_t pid, uint64_t at)
{
    return (uint64_t)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

static uint64_t peek_rip(pid_t pid)
{
    return (uint64_t)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), NULL);
}

// How many such instructions the child goes through between the two moments; -1: it does not get there.
static int lead(pid_t pid)
{
    bool landed = false;
    int found = 0, status;

    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t code[2] = {0};
        if (landed) {
            uint64_t at = peek_rip(pid);
            code[0] = peek(pid, at);
            code[1] = peek(pid, at + 8);
        }
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
            !WIFSTOPPED(status))
            return -1;
        if (landed && peek(pid, (uintptr_t)led->result) == FRESH)
            return found;
        found += orders((const uint8_t *)code);
        landed = landed || peek(pid, (uintptr_t)led->landed) == ROUNDS;
    }
    return -1;
}

static void a_read_looks_after_the_writes_before_it_are_seen(void **state)
{
    (void)state;
    led = test_shared(sizeof *led);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status, found;
        led->row = &rows[i];
        pid_t pid = test_fork(child, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip(); // nobody may be led here
        assert_true(WIFSTOPPED(status));
        found = lead(pid);
        if (found <= 0)
            fprintf(stderr, "%s: expected an instruction between it and the READ that orders them, got %d\n",
                    rows[i].what, found);
        assert_true(found > 0);
        test_kill(pid);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_looks_after_the_writes_before_it_are_seen),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("a READ looks last", tests, NULL, NULL);
}
#endif
