// SPDX-License-Identifier: MIT
// The data checker beside perftest, which looks at no byte: the same opcode with the same options between two
// processes, every byte compared where it must have arrived, and every byte beside it.
//
//     verify_prog OP [-s SIZE] [-a] [-q QUEUES] [-l LIST] [-I INLINE] [-e] [-Q EVERY] [-b] [-n ROUNDS]
//
// OP: write, write_imm, read, send, send_imm, fadd, cas. The letters mean what they mean to perftest; -a
// runs all sizes from 1 byte to 8 MiB in powers of two, and one byte more and less of each. Prints one
// line, exits 0 when all was right. DRYDOCK_SEED replays the contents.
#include <getopt.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "face/lib/ends.h"

enum op { WRITE, WRITE_IMM, READ, SEND, SEND_IMM, FADD, CAS, N_OPS };

static const struct {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool one_sided, takes_receive, atomic;
} ops[N_OPS] = {
    [WRITE] = {"write", IBV_WR_RDMA_WRITE, true, false, false},
    [WRITE_IMM] = {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, true, true, false},
    [READ] = {"read", IBV_WR_RDMA_READ, true, false, false},
    [SEND] = {"send", IBV_WR_SEND, false, true, false},
    [SEND_IMM] = {"send_imm", IBV_WR_SEND_WITH_IMM, false, true, false},
    [FADD] = {"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, true, false, true},
    [CAS] = {"cas", IBV_WR_ATOMIC_CMP_AND_SWP, true, false, true},
};

enum { GUARD = 64, MAX_QUEUES = 64 };

static struct {
    enum op op;
    uint32_t size, queues, list, inline_data, every, rounds;
    bool all, events, both;
    uint64_t seed;
} opt = {.size = 4096, .queues = 1, .list = 1, .every = 1, .rounds = 3};

static struct end end[MAX_QUEUES];
static struct end_address peer[MAX_QUEUES];
static uint64_t checked; // bytes compared in this process

// ---- contents

static unsigned char byte_of(uint32_t queue, uint32_t round, uint32_t size, size_t at)
{
    uint64_t h = opt.seed + queue * 1000003u + round * 7919u + size * 31u + at * 2654435761u;

    return (unsigned char)(h ^ h >> 17 ^ h >> 31);
}

static size_t slot(uint32_t i, uint32_t size)
{
    return GUARD + i * ((size_t)size + GUARD);
}

static void fill_slots(uint32_t q, uint32_t round, uint32_t size)
{
    for (uint32_t i = 0; i < opt.list; i++)
        for (uint32_t b = 0; b < size; b++)
            end[q].buf[slot(i, size) + b] = (char)byte_of(q * 64 + i, round, size, b);
}

static void expect_slots(uint32_t q, uint32_t round, uint32_t size)
{
    for (uint32_t i = 0; i < opt.list; i++) {
        const unsigned char *at = (const unsigned char *)end[q].buf + slot(i, size);
        for (uint32_t b = 0; b < size; b++)
            if (at[b] != byte_of(q * 64 + i, round, size, b))
                check_failed(__FILE__, __LINE__,
                             "%s of %u bytes, queue %u, round %u, slot %u: byte %u differs", ops[opt.op].name,
                             size, q, round, i, b);
        for (unsigned g = 0; g < GUARD; g++)
            if (at[-1 - (int)g] != 0xee || at[size + g] != 0xee)
                check_failed(__FILE__, __LINE__,
                             "%s of %u bytes, queue %u, slot %u: a byte beside the range changed",
                             ops[opt.op].name, size, q, i);
        checked += size;
    }
}

static void clear(uint32_t q)
{
    memset(end[q].buf, 0xee, end[q].opt.bytes);
}

// ---- one process's requests

static void wait_event(uint32_t q)
{
    struct ibv_cq *cq;
    void *context;

    CHECK_INT(ibv_get_cq_event(end[q].channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
}

// n completions of `cq`, all successful; sleeping on events if asked to.
static void take(uint32_t q, struct ibv_cq *cq, uint32_t n)
{
    struct ibv_wc wc;

    while (n) {
        if (opt.events)
            CHECK_INT(ibv_req_notify_cq(cq, 0), 0);
        uint32_t before = n;
        while (n && poll_one(cq, &wc, opt.events ? 0 : 10000)) {
            CHECK_INT(wc.status, IBV_WC_SUCCESS);
            n--;
        }
        CHECK(opt.events || n == 0);
        if (opt.events && n && n == before)
            wait_event(q);
    }
}

static void post_list(uint32_t q, uint32_t round, uint32_t size)
{
    struct ibv_send_wr wr[64], *bad;
    struct ibv_sge sge[64];

    for (uint32_t i = 0; i < opt.list; i++) {
        bool last = i == opt.list - 1;
        uint64_t raddr = ops[opt.op].atomic ? peer[q].addr : peer[q].addr + slot(i, size);
        sge[i] = end_sge(&end[q], slot(i, size), size);
        wr[i] = send_wr(i, ops[opt.op].opcode, &sge[i], raddr, peer[q].rkey);
        wr[i].next = last ? NULL : &wr[i + 1];
        wr[i].send_flags = last || (i + 1) % opt.every == 0 ? IBV_SEND_SIGNALED : 0;
        if (opt.inline_data && size <= opt.inline_data)
            wr[i].send_flags |= IBV_SEND_INLINE;
        if (ops[opt.op].takes_receive)
            wr[i].imm_data = round * 64 + i;
        if (opt.op == FADD)
            wr[i].wr.atomic.compare_add = 3;
        if (opt.op == CAS) {
            wr[i].wr.atomic.compare_add = round * opt.list + i;
            wr[i].wr.atomic.swap = round * opt.list + i + 1;
        }
    }
    CHECK_INT(ibv_post_send(end[q].qp, wr, &bad), 0);
    take(q, end[q].cq, opt.list / opt.every + (opt.list % opt.every != 0));
}

// The word is touched by one queue alone: the values that come back are known.
static void expect_atomics(uint32_t q, uint32_t round)
{
    for (uint32_t i = 0; i < opt.list; i++) {
        uint64_t old;
        memcpy(&old, end[q].buf + slot(i, 8), 8);
        CHECK_INT(old, (opt.op == FADD ? 3 : 1) * (round * opt.list + i));
        checked += 8;
    }
}

static void expect_receives(uint32_t q, uint32_t round, uint32_t size)
{
    if (opt.op == SEND || opt.op == SEND_IMM || opt.op == WRITE_IMM)
        for (uint32_t i = 0; i < opt.list; i++) {
            struct ibv_wc wc;
            if (opt.events) {
                take(q, end[q].rcq, opt.list);
                return;
            }
            CHECK(poll_one(end[q].rcq, &wc, 10000));
            CHECK_INT(wc.status, IBV_WC_SUCCESS);
            CHECK_INT(wc.wr_id, i);
            CHECK_INT(wc.byte_len, size);
            CHECK_INT(wc.opcode, opt.op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
            if (opt.op != SEND)
                CHECK_INT(wc.imm_data, round * 64 + i);
        }
}

// ---- a round, seen from both sides. `mine`: this process sends requests; `theirs`: it is their target.

static void prepare(uint32_t q, uint32_t round, uint32_t size, bool mine, bool theirs)
{
    bool source = opt.op == READ ? theirs : mine;

    if (ops[opt.op].atomic) // the word begins at zero and goes on from round to round
        return;
    clear(q);
    if (source)
        fill_slots(q, round, size);
    for (uint32_t i = 0; theirs && ops[opt.op].takes_receive && i < opt.list; i++)
        CHECK_INT(post_recv(&end[q], i, slot(i, size), opt.op == WRITE_IMM ? 0 : size), 0);
}

static void verify(uint32_t q, uint32_t round, uint32_t size, bool mine, bool theirs)
{
    if (ops[opt.op].atomic) {
        if (mine)
            expect_atomics(q, round);
        if (theirs) {
            uint64_t word;
            memcpy(&word, end[q].buf, 8);
            CHECK_INT(word, (opt.op == FADD ? 3 : 1) * (round + 1) * opt.list);
        }
        return;
    }
    if (theirs)
        expect_receives(q, round, size);
    if (opt.op == READ ? mine : theirs)
        expect_slots(q, round, size);
}

static void run_size(int sock, uint32_t size, bool left)
{
    for (uint32_t round = 0; round < opt.rounds; round++)
        for (unsigned way = 0; way < (opt.both ? 2 : 1); way++) {
            bool mine = left == (way == 0), theirs = !mine;
            for (uint32_t q = 0; q < opt.queues; q++)
                prepare(q, round, size, mine, theirs);
            meet(sock);
            for (uint32_t q = 0; mine && q < opt.queues; q++)
                post_list(q, round, size);
            meet(sock);
            for (uint32_t q = 0; q < opt.queues; q++)
                verify(q, round, size, mine, theirs);
            meet(sock);
        }
}

static void run_all_sizes(int sock, bool left)
{
    for (uint32_t size = 1; size <= 8u << 20; size *= 2) {
        run_size(sock, size, left);
        if (size > 4 && size < 8u << 20) {
            run_size(sock, size - 1, left);
            run_size(sock, size + 1, left);
        }
    }
}

static void side(int sock, bool left)
{
    uint32_t most = opt.all ? (8u << 20) + 1 : opt.size;
    struct end_options o = {
        .send_wr = opt.list,
        .recv_wr = opt.list,
        .inline_data = opt.inline_data,
        .cqe = 2 * (int)opt.list,
        .bytes = slot(opt.list, most) + GUARD,
        .channel = opt.events,
        .rnr_retry = 7,
    };

    for (uint32_t q = 0; q < opt.queues; q++)
        end_meet(&end[q], &o, sock, &peer[q]);
    if (opt.all)
        run_all_sizes(sock, left);
    else
        run_size(sock, opt.size, left);
    for (uint32_t q = 0; q < opt.queues; q++)
        end_close(&end[q]);
    uint64_t there = checked;
    if (left)
        hear(sock, &there, sizeof there);
    else
        tell(sock, &there, sizeof there);
    checked += there;
}

static void left_side(int sock)
{
    side(sock, true);
}

static void right_side(int sock)
{
    side(sock, false);
}

static void usage(void)
{
    fprintf(stderr,
            "verify_prog write|write_imm|read|send|send_imm|fadd|cas [-s SIZE] [-a] [-q QUEUES] [-l LIST]\n"
            "            [-I INLINE] [-e] [-Q EVERY] [-b] [-n ROUNDS]\n");
    exit(2);
}

static uint32_t number(uint32_t least, uint32_t most)
{
    unsigned long v = strtoul(optarg, NULL, 0);

    if (v < least || v > most)
        usage();
    return (uint32_t)v;
}

static void options(int argc, char **argv)
{
    const char *seed = getenv("DRYDOCK_SEED");
    int c;

    opt.seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)getpid() * 2654435761u;
    for (opt.op = 0; argc > 1 && opt.op < N_OPS && strcmp(argv[1], ops[opt.op].name); opt.op++)
        ;
    if (argc < 2 || opt.op == N_OPS)
        usage();
    optind = 2;
    while ((c = getopt(argc, argv, "s:aq:l:I:eQ:bn:")) != -1)
        switch (c) {
        case 's':
            opt.size = number(0, 8u << 20);
            break;
        case 'a':
            opt.all = true;
            break;
        case 'q':
            opt.queues = number(1, MAX_QUEUES);
            break;
        case 'l':
            opt.list = number(1, 64);
            break;
        case 'I':
            opt.inline_data = number(1, 192);
            break;
        case 'e':
            opt.events = true;
            break;
        case 'Q':
            opt.every = number(1, 64);
            break;
        case 'b':
            opt.both = true;
            break;
        case 'n':
            opt.rounds = number(1, 100000);
            break;
        default:
            usage();
        }
    if (ops[opt.op].atomic) {
        opt.size = 8;
        opt.all = false;
    }
}

int main(int argc, char **argv)
{
    options(argc, argv);
    two_processes(left_side, right_side);
    printf("%s: %llu bytes compared, all right (DRYDOCK_SEED=%llu)\n", ops[opt.op].name,
           (unsigned long long)checked, (unsigned long long)opt.seed);
    return 0;
}
