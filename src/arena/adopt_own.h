// SPDX-License-Identifier: MIT
// What the files of adoption share. All under the adoption lock.
#ifndef DOCK_ARENA_ADOPT_OWN_H
#define DOCK_ARENA_ADOPT_OWN_H

#include <sys/mman.h>
#include <unistd.h>

#include "arena/adopt.h"
#include "arena/huge.h"
#include "arena/maps.h"
#include "base/rawcall.h"

#define DOCK_ADOPT_CHUNK (4u << 20) // bytes moved per stop

extern struct dock_adopt *dock_adopters; // of the process; the list changes under the views' lock too

extern dock_a64 dock_adopted_bytes; // of all of them: who asks without the lock may be told late

extern uint32_t dock_adopted_runs; // of pages that lie together: two mappings each, with what is between them

static inline bool dock_adopted_any(void)
{
    return dock_peek64(&dock_adopted_bytes) != 0;
}

// ---- adopt_holds.c: registrations by address, from NULL on. addr and len stay while one is there
void dock_holds_add(struct dock_hold **tree, struct dock_hold *h);
void dock_holds_remove(struct dock_hold **tree, const struct dock_hold *h); // that is there
typedef bool dock_holds_see(void *arg, struct dock_hold *h);                // false: enough
// Those that overlap [lo, hi), by address. false: somebody had enough.
bool dock_holds_each(struct dock_hold *tree, uint64_t lo, uint64_t hi, dock_holds_see *see, void *arg);

// ---- adopt_change.c
void dock_adopt_hook(void);
// The calling thread has the views' lock and forks. ends: before it gives the lock back.
void dock_adopt_fork_begins(void);
void dock_adopt_fork_ends(bool in_child);

// A forked child: all that it has inherited is its own memory, and nobody's registration.
void dock_adopt_forget(void);
// ---- adopt_fork.c
void dock_adopt_watch_forks(void);
const void *dock_fork_room(size_t *bytes); // that it works with; NULL: there is none yet

static inline uint64_t dock_page(void)
{
    return (uint64_t)getpagesize();
}

// Zeroed memory of ours that is made once and stays: what there is, or what there is now. NULL: none.
static inline void *dock_room_once(void *room, size_t bytes)
{
    if (!room)
        room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return room == MAP_FAILED ? NULL : room;
}

// Empty private memory at `at`, whatever was there: as SYS_mmap says.
static inline long dock_map_private(uint64_t at, uint64_t len, uint32_t prot, int flags)
{
    return dock_rawcall(SYS_mmap, (long)at, (long)len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags,
                        -1, 0);
}

// A mapping, or several, to `to`, whatever was there: as SYS_mremap says.
static inline long dock_map_move(uint64_t from, uint64_t len, uint64_t to)
{
    return dock_rawcall(SYS_mremap, (long)from, (long)len, (long)len, MREMAP_MAYMOVE | MREMAP_FIXED, (long)to,
                        0);
}

// ---- adopt_mirror.c: windows of the arena file that stand for an aligned part of the address space
#define DOCK_REF_LINGERS (1u << 31) // adopted, and held by nobody

// Where the program's own mappings wait.
struct dock_park {
    void *room;     // that was reserved for them,
    uint64_t base;  // and where in it the mirror begins. 0: there is none
    uint64_t *bit;  // by page: something waits there
    uint32_t pages; // of those
    uint32_t odd; // runs that came back by themselves between pages that were away, since it was last looked
    bool always;  // they have become many: the kernel does not make them one with what comes beside them
    bool torn;    // it could not be had, or a part of it was lost: nothing more comes
};

// The list, and what a mirror stands for, change under the views' lock too.
struct dock_mirror {
    struct dock_mirror *next;
    uint64_t va, off;
    uint32_t *refs; // by page: holds that use it
    uint32_t live;  // pages whose word is not 0
    uint8_t *huge;  // by piece of DOCK_HUGE_BYTES: 1 is in a huge page
    struct dock_park park;
};

// A mirror in which [lo, hi), which lies in one window, is free. NULL: no more windows.
struct dock_mirror *dock_mirror_for(struct dock_adopt *a, uint64_t lo, uint64_t hi);
struct dock_mirror *dock_mirror_at(const struct dock_adopt *a, uint64_t off);
uint64_t dock_mirror_size(const struct dock_adopt *a);
size_t dock_mirror_bytes(const struct dock_adopt *a); // of a struct dock_mirror with what it counts
// Would the run be one more of mappings of which the process must keep some for itself?
bool dock_mirror_crowded(const struct dock_adopt *a, const struct dock_mirror *m, uint64_t lo, uint64_t hi);
// Does anybody hold what this page of the program was? The program may have put another one there.
bool dock_mirror_held(const struct dock_adopt *a, uint64_t addr);
// Take or leave the pages of [off, off + len), where they lie in mirrors.
void dock_mirror_ref(struct dock_adopt *a, uint64_t off, uint64_t len);
typedef void dock_mirror_free(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len);
// `freed` is told about runs of pages, none longer than a chunk, that nobody uses any more. Their words are
// still 1 page = LINGERS: dock_mirror_clear makes them free.
void dock_mirror_unref(struct dock_adopt *a, uint64_t off, uint64_t len, dock_mirror_free *freed);
void dock_mirror_clear(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len);
// Pages that are free now return to the system: those of a long run at once, those of a short one when others
// have come since, so that a buffer that is registered again and again finds its pages, and its peers theirs.
void dock_mirror_retire(struct dock_adopt *a, uint64_t off, uint64_t len);
// Runs of lingering pages.
void dock_mirror_lingering(struct dock_adopt *a, dock_mirror_free *each);
void dock_mirrors_close(struct dock_adopt *a);

// ---- adopt_fit.c: what may be adopted
bool dock_vma_ours(const struct dock_adopt *a, const struct dock_vma *v);
bool dock_vma_fits(const struct dock_vma *v);
void dock_fit_learn(void);        // of this kernel, once
uint32_t dock_fit_mappings(void); // that adoption may use up
void dock_fit_find_data(void);    // what dock_vma_fits knows of .data; not in a stop
// io_uring and the like; may run in a stop. `own`: whose descriptors are known not to be such, since that of
// its arena was looked at; or NULL.
enum dock_adopt_why dock_fit_process(const struct dock_adopt *own);
// Is there room for `bytes` more in this process's cgroup?
bool dock_fit_headroom(uint64_t bytes);
// What of the mapping [vlo, vhi) is the stack or control block of a thread with this stack pointer and thread
// pointer: pages from *first to *end. false: nothing.
bool dock_fit_thread(uint64_t vlo, uint64_t vhi, uint64_t sp, uint64_t tp, uint64_t *first, uint64_t *end);

// ---- adopt_self.c
// What of [lo, hi) belongs to the device itself: the first run of pages. false: nothing.
bool dock_self_in(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *end);

// ---- adopt_holes.c
#define DOCK_HOLES_FROM (1u << 20)  // bytes of a registration: in less there is nothing to save
#define DOCK_HOLES_BACK_FROM 65536u // of a run that goes back: it may be a small piece of such a one
bool dock_holes_allowed(void);      // may pages of the arena that were never stored to stay holes?
// In a stop: look at the pages of a chunk, then ask for runs of those that hold anything, from *from on.
bool dock_holes_read(uint64_t lo, uint64_t hi);
bool dock_holes_empty(uint64_t of); // does a page with this word in the page map hold nothing?
bool dock_holes_run(uint64_t lo, uint64_t hi, uint64_t *from, uint64_t *to);
uint64_t dock_holes_full(uint64_t lo, uint64_t from, uint64_t to); // how many of these pages hold anything
// The next run of a file that holds anything. false: none before `end`.
bool dock_holes_run_of_file(int fd, uint64_t end, uint64_t *from, uint64_t *to);

// ---- adopt_huge.c
// Huge pages in the arena for the whole pieces of [lo, hi), a chunk at most, that hold enough. They read as
// zeros. Before the stop. Says once that the program's own are broken up.
void dock_huge_make(struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t hi);
// These pages leave: the pieces that they belong to are whole no more.
void dock_huge_forget(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len);
// Is `off` of the file in a huge page? *to, at most `end`, is how far it goes on so.
bool dock_huge_run(const struct dock_mirror *m, uint64_t off, uint64_t end, uint64_t *to);
bool dock_huge_any(const struct dock_mirror *m, uint64_t off, uint64_t len); // a whole one
// May the program's own memory have huge pages that it did not ask for by name?
bool dock_huge_private(void);
// The new private pages at `at`, which are to hold [off, off + len), get them where the arena's had. In a
// stop.
void dock_huge_return(const struct dock_mirror *m, uint64_t at, uint64_t off, uint64_t len);

// ---- adopt_park.c: the program's own mappings wait while the arena's pages are in their place
uint64_t dock_park_bytes(const struct dock_adopt *a); // of the bits of a mirror
uint64_t dock_park_room(const struct dock_adopt *a);  // of the addresses where they wait
extern uint32_t dock_park_pieces;                     // mappings that wait, at most; the views' lock is held
extern dock_a64 dock_park_blank; // bytes of address space without access in which nothing waits
#define DOCK_PARK_FROM 65536u    // bytes of a registration: beside the copy it costs little from there on
// Before the stop in which a run moves in; the views' lock is held.
void dock_park_prepare(const struct dock_adopt *a, struct dock_mirror *m);
// Whether short runs of this mirror need it, from time to time.
void dock_park_review(const struct dock_adopt *a, struct dock_mirror *m);
// In a stop, of memory without a file, in one mapping: the arena's pages come into its place. false: they did
// not, or it is not worth it.
bool dock_park_in(const struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t len,
                  uint32_t prot);
// In a stop, or a forked child: the program has empty memory of its own at `at`, that which waits for `off`
// where any does, for reading and writing. false: not all of it.
bool dock_park_out(const struct dock_adopt *a, uint64_t at, uint64_t len, uint64_t off, int flags);
// Advice that stays, for what lies at `off`. The views' lock is held. 0 or -errno.
long dock_park_advise(const struct dock_adopt *a, uint64_t off, uint64_t len, int advice);
// Nobody comes for what waits there; in a stop.
void dock_park_drop(const struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len);
void dock_park_close(const struct dock_adopt *a, struct dock_mirror *m);

// ---- adopt_lock.c: memory that is locked. In a stop, or under the views' lock.
bool dock_lock_is(uint64_t at, uint64_t len); // any of it
// How it was locked, and is to be again: MLOCK_ONFAULT or 0. Of the program's memory, and of the arena's.
unsigned dock_lock_kind(uint64_t lo, uint64_t hi);
unsigned dock_lock_kind_of_file(int fd, uint64_t off, uint64_t len);
bool dock_lock_set(uint64_t at, uint64_t len, unsigned kind);
void dock_lock_lift(uint64_t at, uint64_t len);

// ---- adopt_keys.c
bool dock_keyed(uint64_t at); // is it under a protection key that this thread has opened? In a stop

// ---- adopt_move.c
// Copy [lo, *hi) into the mirror and map it in place. -ENOMEM; else 0, and *why when it was left alone. *hi
// comes down to where a thread's stack or control block begins; or, with DOCK_WHY_STACK, to where it ends.
int dock_move_in(struct dock_adopt *a, struct dock_mirror *m, uint64_t lo, uint64_t *hi,
                 enum dock_adopt_why *why);
// Give the program its own pages again wherever it has [off, off + len) mapped. Unless `anywhere` it fails,
// and sets moved_by_program, when they are not all where they were put.
bool dock_move_out(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len, bool anywhere);

// ---- adopt_stop.c
// Memory for stops, once: they do not want any when they come. false: there was none, and a stop tries again.
bool dock_stop_prepare(void);
// Stop every other thread of the process and take the views' lock. The caller handles no signals, faults
// neither (dock_unsignalled_begin). DOCK_WHY_NONE, or why not.
enum dock_adopt_why dock_stop_begin(void);
void dock_stop_end(struct dock_adopt *a);
bool dock_stop_is_alone(void); // in a stop: there were no threads but engines to stop
// What is to be done at the clone of a fork, while all threads stand still, the forking one too: by another
// process that shares the address space. `lend` before it and `take_back` behind it, again if it is made
// anew; `made` with what the call returned, a child or an error, and what is to be called for the child from
// time to time while it is waited for. false: it took longer than the patience below.
struct dock_fork_steps {
    void (*lend)(void);
    void (*take_back)(void);
    bool (*made)(long child, void (*look_after)(long child));
};

#define DOCK_FORK_PATIENCE_NS 30000000000ull // for the copies of a forked child, and for what may hold it up

// For fork's handlers: the others stand still from the moment the child is made, until dock_stop_forked in
// the parent; the views' lock is held as long. false: they cannot be stopped, and run on.
bool dock_stop_fork(const struct dock_fork_steps *steps);
bool dock_stop_forked(bool in_child); // false: they did run
// Another process that shares the address space runs `body` on a stack of ours, while we are in the kernel.
// Not in a stop. false: there is none.
bool dock_stop_elsewhere(int (*body)(void *));
// Is `lo`, in the mapping [vlo, vhi), free of all threads' stacks and control blocks? *until is how far it
// goes on so, at most to `hi`. In a stop.
bool dock_stop_clear(uint64_t lo, uint64_t hi, uint64_t vlo, uint64_t vhi, uint64_t *until);

#endif
