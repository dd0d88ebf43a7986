// SPDX-License-Identifier: MIT
// The third process of tests/fault/bitflip_test.c. It has one queue, to us, and asks nothing of the peer
// whose bits flip: whatever becomes of that, each of its requests and of ours to it succeeds, with the right
// bytes, in time.
#ifndef TESTS_FAULT_BITFLIP_THIRD_H
#define TESTS_FAULT_BITFLIP_THIRD_H

#define ASKED 3u // requests of one exchange

static void meet(struct side *s, unsigned mine)
{
    uint64_t until = dock_now_ns() + WAIT_MS * test_slow() * 1000000ull;
    const char *who = mine ? "the third" : "we";

    open_end(s, CONNECTED, &board->third[mine]);
    for (uint32_t step = 1; step <= 2; step++) {
        dock_publish32(&board->met[mine], step);
        while (dock_acquire32(&board->met[!mine]) < step) {
            if (dock_now_ns() > until)
                wrong(who, "the other of the two does not come");
            test_nap_us(50);
        }
        if (step == 1) {
            end_connect(&s->end, board->third[!mine].qp, NULL);
            post_receives(s);
        }
    }
}

static void ask(struct side *s, const struct desc *to, uint64_t pattern)
{
    char *region = s->memory + GUARD;

    for (unsigned i = 0; i < 1000; i++)
        region[i] = (char)dock_decide(pattern, i, 1);
    memset(region + 2048, 0, 1000);
    if (!post(s, to, DOCK_OP_WRITE, 0, 4096, 1000) || !post(s, to, DOCK_OP_READ, 2048, 4096, 1000) ||
        !post(s, to, DOCK_OP_SEND, 0, 0, 512))
        wrong("a healthy queue", "it takes no request beside a flip in %s", board->field);
}

static void answered(struct side *s, const char *who)
{
    const char *region = s->memory + GUARD;
    struct dock_wc wc;

    for (unsigned i = 0; i < ASKED; i++) {
        if (!end_wait(s->end.scq, &wc, WAIT_MS * test_slow()))
            wrong(who, "hung: a request between the healthy does not complete");
        if (wc.status != DOCK_OK)
            wrong(who, "a request between the healthy ended with %#x (%s)", wc.status, dock_log_last());
    }
    if (memcmp(region, region + 2048, 1000))
        wrong(who, "between the healthy other bytes came back than were written");
}

// Its receive is posted anew before anything is answered.
static bool heard(struct side *s, const char *who)
{
    struct dock_wc wc;

    if (!end_poll(s->end.rcq, &wc))
        return false;
    if (wc.status != DOCK_OK || wc.bytes != 512)
        wrong(who, "a message between the healthy came with %#x and %u bytes", wc.status, wc.bytes);
    post_receive(s, (unsigned)wc.id);
    return true;
}

static void await_answer(struct side *s)
{
    uint64_t until = dock_now_ns() + WAIT_MS * test_slow() * 1000000ull;

    answered(s, "we");
    while (!heard(s, "we"))
        if (dock_now_ns() > until)
            wrong("we", "hung: the third does not answer beside a flip in %s", board->field);
    check_guards(s, "we");
}

static int __attribute__((noreturn)) third(void *arg)
{
    struct side s = {0};

    (void)arg;
    role = 2;
    open_device(&s);
    meet(&s, 1);
    for (uint64_t n = 1;; n++) {
        while (!heard(&s, "the third"))
            test_nap_us(50);
        ask(&s, &board->third[0], n);
        answered(&s, "the third");
        check_guards(&s, "the third");
    }
}

#endif
