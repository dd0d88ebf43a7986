// SPDX-License-Identifier: MIT
// The course of one cell, seen from outside: start the processes, strike, start the dead one anew, let all
// end.
#include "lib/kill.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"

#define FIRST_GROUPS 14u // without the moment having come: it does not come in the traffic
#define MORE_GROUPS 5u
#define CELL_MS 30000u

enum step { TRAFFIC, DRAIN, END };

struct run {
    struct kill_board *board;
    struct kill_part part[KILL_LIVES][KILL_ROLES];
    pid_t pid[KILL_ROLES]; // 0: ended well, or never started
    unsigned life;
    enum step step;
    uint32_t need; // groups of this life before it is stopped
    bool struck, bad;
    struct kill_verdict *out;
};

static void start(struct run *r, enum kill_role role)
{
    struct kill_part *p = &r->part[r->life][role];

    *p = (struct kill_part){.board = r->board, .role = role, .first = r->life, .life = r->life};
    r->pid[role] = test_fork(role == KILL_TARGET ? kill_target : kill_initiator, p);
}

static void wrong(struct run *r, const char *what)
{
    size_t n = (size_t)snprintf(r->out->words, sizeof r->out->words, "%s", what);

    for (unsigned i = 0; i < KILL_ROLES && n < sizeof r->out->words; i++)
        if (r->board->words[i][0])
            n += (size_t)snprintf(r->out->words + n, sizeof r->out->words - n, "; %s", r->board->words[i]);
    r->bad = true;
}

// The dead one is replaced, unless the other side has ended already.
static void died(struct run *r, enum kill_role role)
{
    struct kill_board *b = r->board;

    r->pid[role] = 0;
    dock_set64(&b->died_ns, dock_now_ns());
    dock_set32(&b->stop_target, 0);
    dock_publish32(&b->dead, role + 1);
    if (dock_acquire32(&b->seat[0][KILL_TARGET].phase) == KILL_DONE)
        return;
    r->life = 1;
    r->step = TRAFFIC;
    r->need = MORE_GROUPS;
    start(r, role);
}

static void stopped(struct run *r, enum kill_role role)
{
    test_nap_us(KILL_STOP_MS * 1000);
    kill(r->pid[role], r->board->cell.how == KILL_STOP_CONT ? SIGCONT : SIGKILL);
    r->need = dock_peek32(&r->board->seat[r->life][KILL_INITIATOR].groups) + MORE_GROUPS;
}

static void look(struct run *r, enum kill_role role)
{
    bool victim = role == r->board->cell.side && r->life == 0;
    char what[100];
    int status;

    switch (r->pid[role] ? test_look(r->pid[role], &status) : TEST_RUNS) {
    case TEST_RUNS:
        return;
    case TEST_EXITED:
        r->pid[role] = 0;
        snprintf(what, sizeof what, "the %s ended with status %d", kill_role_name[role], status);
        if (status)
            wrong(r, what);
        return;
    case TEST_STOPPED:
        r->struck = true;
        stopped(r, role);
        return;
    case TEST_KILLED:
        snprintf(what, sizeof what, "the %s died of signal %d", kill_role_name[role], status);
        if (victim && status == SIGKILL) {
            r->struck = true;
            died(r, role);
        } else {
            r->pid[role] = 0;
            wrong(r, what);
        }
    }
}

static bool drained(struct run *r)
{
    struct kill_board *b = r->board;

    return dock_acquire32(&b->seat[r->life][KILL_INITIATOR].phase) >= KILL_DRAINED &&
           (!r->pid[KILL_THIRD] || dock_acquire32(&b->seat[0][KILL_THIRD].phase) >= KILL_DRAINED);
}

static void advance(struct run *r)
{
    struct kill_board *b = r->board;

    if (r->step == TRAFFIC && dock_acquire32(&b->seat[r->life][KILL_INITIATOR].groups) >= r->need) {
        dock_publish32(&b->stop_senders[r->life], 1);
        dock_publish32(&b->stop_third, 1);
        r->step = DRAIN;
    } else if (r->step == DRAIN && drained(r)) {
        dock_publish32(&b->stop_target, 1);
        r->step = END;
    }
}

// Strike at an instant that has nothing to do with what the device does.
static void strike_at_random(struct run *r)
{
    const struct kill_cell *c = &r->board->cell;
    uint64_t until = dock_now_ns() + KILL_WAIT_MS * test_slow() * 1000000ull;

    if (c->moment >= 0)
        return;
    while (!r->bad && dock_acquire32(&r->board->seat[0][KILL_INITIATOR].phase) < KILL_READY) {
        for (unsigned i = 0; i < KILL_ROLES; i++)
            look(r, i);
        if (dock_now_ns() > until)
            wrong(r, "hung: no connection");
        test_nap_us(50);
    }
    test_nap_us(c->after_us);
    if (!r->bad)
        kill(r->pid[c->side], c->how == KILL_NOW ? SIGKILL : SIGSTOP);
}

static void check_failures(struct run *r)
{
    const struct kill_cell *c = &r->board->cell;
    uint32_t n = dock_peek32(&r->board->failures);
    char what[100];

    if ((c->side == KILL_INITIATOR || c->how == KILL_STOP_CONT) && n) {
        snprintf(what, sizeof what, "%u requests of living senders failed, expected 0", n);
        wrong(r, what);
    }
}

void kill_run(struct kill_board *board, const struct kill_cell *cell, struct kill_verdict *out)
{
    struct run r = {.board = board, .need = FIRST_GROUPS, .out = out};
    uint64_t until = dock_now_ns() + CELL_MS * test_slow() * 1000000ull;

    memset(board, 0, sizeof *board);
    memset(out, 0, sizeof *out);
    board->cell = *cell;
    if (cell->moment < 0)
        r.need = UINT32_MAX;
    start(&r, KILL_TARGET);
    start(&r, KILL_INITIATOR);
    if (cell->third)
        start(&r, KILL_THIRD);
    strike_at_random(&r);
    while (!r.bad && (r.pid[0] || r.pid[1] || r.pid[2])) {
        for (unsigned i = 0; i < KILL_ROLES; i++)
            look(&r, i);
        advance(&r);
        if (dock_now_ns() > until)
            wrong(&r, "hung: the cell does not end");
        test_nap_us(100);
    }
    for (unsigned i = 0; i < KILL_ROLES; i++)
        if (r.pid[i])
            test_kill(r.pid[i]);
    if (!r.bad)
        check_failures(&r);
    out->reached = r.struck;
    out->good = !r.bad;
    if (dock_peek64(&board->noticed_ns) > dock_peek64(&board->died_ns) && dock_peek64(&board->died_ns))
        out->noticed_ms = (double)(dock_peek64(&board->noticed_ns) - dock_peek64(&board->died_ns)) / 1e6;
}
