// SPDX-License-Identifier: MIT
// Adoption: registered private memory becomes arena memory under the running program, so that peers reach
// it by loads and stores. Pages are copied into the arena and mapped in place; the last registration that
// goes away moves them back. What cannot be adopted stays where it is and is reached through the kernel.
//
// The state is the process's, whatever its number of devices: one lock, taken by whoever registers or
// deregisters around everything that depends on the pieces (dock_adopt_lock). It comes before the device's.
#ifndef DOCK_ARENA_ADOPT_H
#define DOCK_ARENA_ADOPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/order.h"

enum dock_adopt_mode {
    DOCK_ADOPT_OFF,
    DOCK_ADOPT_INNER, // pages that the registration covers wholly
    DOCK_ADOPT_ON,    // the pages at its edges too
};

// Why pages were not adopted, or not given back yet.
enum dock_adopt_why {
    DOCK_WHY_NONE,
    DOCK_WHY_KIND,    // file, shared, hugetlb, executable or unreadable memory
    DOCK_WHY_STACK,   // a thread's stack, TCB or rseq area
    DOCK_WHY_PINNED,  // io_uring, AIO or userfaultfd is open: the kernel may hold the old pages
    DOCK_WHY_THREADS, // the other threads could not be stopped
    DOCK_WHY_LIMIT,   // mappings or windows used up
    DOCK_WHY_HOST,    // a sanitizer, valgrind, descriptors that are gone, or the arena is held
    DOCK_WHY_CHANGED, // the program changed the mapping meanwhile
    DOCK_WHYS
};

extern const char *const dock_adopt_why_name[DOCK_WHYS];

// Written under the adoption lock, in the port record: `drydock show` prints it.
struct dock_adopt_counts {
    dock_a64 bytes;    // adopted now
    dock_a64 moved_in; // bytes, ever
    dock_a64 stops;    // times that other threads were stopped
    dock_a64 stopped_ns;
    dock_a64 forked_bytes; // copied for forked children
    dock_a64 refused[DOCK_WHYS];
    dock_a64 huge; // bytes that lie in huge pages now
};

// A part of a registration that lies in the arena. What lies between two of them is plain.
struct dock_piece {
    uint64_t addr, len; // in the program's address space
    uint64_t off;       // in the arena
};

struct dock_adopt;

// What one registration holds: whoever registers fills addr, len and whether it may be written. It does not
// move in memory while it is listed.
struct dock_hold {
    uint64_t addr, len;
    bool write;
    struct dock_adopt *of;
    struct dock_piece *piece; // ascending: the one below, or a list of many
    unsigned pieces, room;
    struct dock_piece one;
    struct dock_hold *below[2]; // of the process: adopt_holds.c
    uint64_t rank, reach;
};

struct dock_adopt_ops {
    // Until resume nobody, here or in a peer, touches memory of this device that is not in its arena.
    void (*pause)(void *user);
    void (*resume)(void *user);
    // The pieces of a hold have changed. Between pause and resume.
    void (*changed)(void *user, struct dock_hold *h);
    // We wait and are alive: peers that wait for us shall not take us for stopped.
    void (*beat)(void *user);
};

struct dock_mirror;

#define DOCK_ADOPT_OWN 6u
#define DOCK_ADOPT_KEPT 8u

// Of the arena file.
struct dock_run {
    uint64_t off, len;
};

// One per device.
struct dock_adopt {
    enum dock_adopt_mode mode;
    struct dock_arena *arena;
    struct dock_adopt_counts *counts;
    const struct dock_adopt_ops *ops;
    void *user;
    struct dock_mirror *mirrors;
    size_t user_bytes;
    struct dock_run kept[DOCK_ADOPT_KEPT]; // pages that have moved back and are still there, the oldest first
    unsigned keeps;
    bool large;         // the registration that moves in is
    bool holes;         // pages that nobody ever touched stay holes in the arena
    bool huge;          // the registration at work asks for huge pages: it was not refused any yet
    uint64_t lingering; // pages without a registration that could not be moved back
    unsigned whole;     // regions that touch memory without holding it: every move concerns them
    bool paused;
    bool closed;             // its device is; it is listed for the pages that stayed
    bool moved_by_program;   // the last move back did not find its pages where they were put
    bool inherited;          // in a forked child: there is nothing to move back
    int own[DOCK_ADOPT_OWN]; // descriptors of its device
    unsigned owned;
    // The engine thread works under the gate, and leaves it while it sleeps.
    pthread_mutex_t gate;
    bool engine;
    int32_t engine_tid;
    uint64_t engine_stack, engine_stack_end;
    struct dock_adopt *next;
};

// DRYDOCK_ADOPT, or what this process allows. Logs a refusal once.
enum dock_adopt_mode dock_adopt_wanted(void);

// `user` is the device, in pages of its own: so many bytes.
int dock_adopt_open(struct dock_adopt *a, enum dock_adopt_mode mode, struct dock_arena *arena,
                    struct dock_adopt_counts *counts, const struct dock_adopt_ops *ops, void *user,
                    size_t user_bytes);
// These descriptors are the device's from now on, until it names others, and none before it closes them: as
// long as the arena's leads to the arena they are not asked for what they are at every move.
void dock_adopt_owns(struct dock_adopt *a, const int *fd, unsigned n);
// true: the arena may go. false: pages of it are still the program's and could not be moved back; the
// arena must stay as it is.
bool dock_adopt_close(struct dock_adopt *a);

void dock_adopt_lock(void);
void dock_adopt_unlock(void);

// The calling thread is the engine, and may be told apart from the program's threads.
void dock_adopt_engine(struct dock_adopt *a, bool runs);

// Adopt what can be adopted and list it. 0 whatever was adopted; -ENOMEM if there is no memory for it,
// -EFAULT if some of it may not be written and should be: then it holds nothing, of nobody. Locked.
int dock_adopt_hold(struct dock_adopt *a, struct dock_hold *h);
// Nobody works through it any more. Moves back what nobody else holds. Locked.
void dock_adopt_drop(struct dock_adopt *a, struct dock_hold *h);
// A piece more, for memory that is in the arena already and stays there. -ENOMEM.
int dock_hold_add(struct dock_hold *h, uint64_t addr, uint64_t len, uint64_t off);
int dock_hold_room(struct dock_hold *h); // the next dock_hold_add cannot fail. -ENOMEM
void dock_hold_clear(struct dock_hold *h);
// The piece that `addr` lies in, or NULL; *room is how far it (or the gap) goes on from there.
const struct dock_piece *dock_hold_at(const struct dock_hold *h, uint64_t addr, uint64_t *room);

#endif
