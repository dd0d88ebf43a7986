// SPDX-License-Identifier: MIT
// One cell of the kill tests: an initiator and a target under traffic of mixed opcodes, perhaps a third
// process that sends to the same shared receive queue; one of the first two is killed or stopped at a moment
// of the device or at a random instant. What the others must see is checked in their own processes, byte by
// byte where a status says success; afterwards the dead one is started anew and the survivor goes on with it.
#ifndef TESTS_LIB_KILL_H
#define TESTS_LIB_KILL_H

#include "lib/fork.h"
#include "lib/pair.h"

#define KILL_STOPPED_MS 5000 // patience of all devices with a stopped holder: load must not use it up
#define KILL_STOP_MS 30      // so long a process is stopped: nobody may lose patience
#define KILL_WAIT_MS 10000   // no single wait of a survivor may take longer

enum kill_role { KILL_INITIATOR, KILL_TARGET, KILL_THIRD, KILL_ROLES };
enum kill_how { KILL_NOW, KILL_STOP_CONT, KILL_STOP_KILL, KILL_HOWS };

extern const char *const kill_role_name[KILL_ROLES];
extern const char *const kill_how_name[KILL_HOWS];

struct kill_cell {
    int moment;    // enum dock_moment; -1: after `after_us` of traffic
    bool abroad;   // the moment concerns a queue of the peer, not one of our own
    bool straight; // it is one of the straight way: abroad of a SEND (fabric/host/send.c), else of a WRITE
    bool atomic;   // it is one of an atomic
    unsigned occurrence; // the how-many-th moment, from 1
    unsigned after_us;
    enum kill_role side;
    enum kill_how how;
    bool asleep, third; // the target sleeps on its channel; a third process sends to its shared receive queue
    bool plain;         // the target's memory is not in its arena
    bool rm;            // queues without a connection: each request names the target
    uint64_t seed;
};

enum kill_phase { KILL_STARTS, KILL_DESCRIBED, KILL_READY, KILL_DRAINED, KILL_DONE };

// One process's place in one life of the connection (life 0 ends with the death, 1 is the one after it).
struct kill_seat {
    dock_a32 phase;       // enum kill_phase, publishes what is above it in time
    dock_a32 groups;      // of requests completed, or messages received
    dock_a32 sent;        // messages whose completion said success
    uint32_t qp[2], rkey; // the target has a queue for each sender
    uint64_t addr;
};

#define KILL_LIVES 2

// Shared by the test and its processes.
struct kill_board {
    struct kill_cell cell;
    struct kill_seat seat[KILL_LIVES][KILL_ROLES];
    dock_a32 dead; // 1 + the role that is no more
    dock_a32 stop_senders[KILL_LIVES];
    dock_a32 stop_third, stop_target;
    dock_a64 died_ns, noticed_ns; // noticed: the last survivor has its failure or has cleaned up
    dock_a32 failures;            // completions with an error status that survivors have seen
    char words[KILL_ROLES][240];
};

struct kill_verdict {
    bool reached, good;
    double noticed_ms; // from the death to the survivors' knowing
    char words[512];
};

// Run one cell. `board` from test_shared.
void kill_run(struct kill_board *board, const struct kill_cell *cell, struct kill_verdict *out);

// ---- inside a role's process

struct kill_part {
    struct kill_board *board;
    enum kill_role role;
    unsigned first, life; // its first life of the connection, and the present one
};

int kill_initiator(void *part); // also the third
int kill_target(void *part);

// Say what is wrong on the board and end this process.
void kill_wrong(const struct kill_part *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
// Install the hook if this role is the victim; it strikes from kill_arm() on.
void kill_prepare(const struct kill_part *p);
void kill_arm(struct dock_dev *dev);
// Wait until *word >= value. false: `role` is dead.
bool kill_await(const struct kill_part *p, dock_a32 *word, uint32_t value, enum kill_role role,
                const char *what);
void kill_noticed(const struct kill_part *p);

static inline bool kill_is_dead(const struct kill_part *p, enum kill_role role)
{
    return p->life == 0 && dock_acquire32(&p->board->dead) == role + 1u; // who died in life 0 lives in life 1
}

static inline struct kill_seat *kill_seat(const struct kill_part *p, unsigned life, enum kill_role role)
{
    return &p->board->seat[life][role];
}

// ---- what is sent

#define KILL_BUFFERS 16u // receives of the target
#define KILL_RECV_BYTES (160u << 10)
#define KILL_SLOTS 64u // of the target, for WRITEs
#define KILL_SLOT_BYTES 2048u
#define KILL_SLOTS_AT (KILL_BUFFERS * KILL_RECV_BYTES)
#define KILL_COUNTERS_AT (KILL_SLOTS_AT + KILL_SLOTS * KILL_SLOT_BYTES)
#define KILL_TARGET_BYTES (KILL_COUNTERS_AT + 4096u)

// Length and bytes of message `n` of a sender in one life; pattern 0 is of messages, 1 of what is written.
uint32_t kill_length(const struct kill_cell *cell, enum kill_role role, uint32_t n);
void kill_fill(char *at, uint32_t len, enum kill_role role, unsigned life, uint32_t n);
bool kill_matches(const char *at, uint32_t len, enum kill_role role, unsigned life, uint32_t n);

#endif
