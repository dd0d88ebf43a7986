/* SPDX-License-Identifier: MIT
 * The windows of a view (src/arena/view.c, arena.h): who needs bytes that are not mapped maps the window and makes chunks
 * of it accessible under the view's lock, then adds them to the word of chunks; who finds its chunks there takes the
 * window's address without the lock. Nobody uses an address that is not there, or a chunk that is not accessible, and a
 * window is mapped once.
 *
 * switches: UNORDERED_CHUNKS UNORDERED_LOOK CHUNKS_FIRST NO_LOCK STORE_NOT_OR
 *   UNORDERED_CHUNKS  the chunks may be told before the window's address
 *   UNORDERED_LOOK    a reader may take the window's address before it sees the chunks
 *   CHUNKS_FIRST      the chunks are told before they are accessible
 *   NO_LOCK           two map at once
 *   STORE_NOT_OR      chunks are told by a store of one's own
 *
 * pairs: arena/arena.c: dock_arena_offset; arena/arena.h: dock_view_at; arena/view.c: open_chunks window_at.
 */
#define VARS 2
#define PROCS 3
#define WINDOW 0
#define CHUNKS 1
#include "weak.pml"

bool locked;
byte mapped, accessible, finished;

inline tell_chunks()
{
#ifdef UNORDERED_CHUNKS
    store(CHUNKS, need | known)
#else
#ifdef STORE_NOT_OR
    release(CHUNKS, need)
#else
    release(CHUNKS, need | known) /* fetch_or: under the lock nobody else writes it */
#endif
#endif
}

inline map_it() /* dock_view_map */
{
#ifndef NO_LOCK
    atomic { !locked && ORDERED -> locked = true };
#endif
    load(WINDOW, base); /* window_at */
    load(CHUNKS, known);
    if
    :: !base -> mapped++; assert(mapped == 1); store(WINDOW, 1); base = 1
    :: else
    fi;
#ifdef CHUNKS_FIRST
    tell_chunks();
    accessible = accessible | need; /* open_chunks */
#else
    accessible = accessible | need;
    tell_chunks();
#endif
#ifndef NO_LOCK
    atomic { ORDERED -> locked = false }
#endif
}

proctype user(byte me; byte need) /* dock_view_at */
{
    byte chunks, base, known;

#ifdef UNORDERED_LOOK
    load(WINDOW, base);
#endif
    load(CHUNKS, chunks);
    if
    :: (chunks & need) != need -> map_it()
    :: else ->
#ifndef UNORDERED_LOOK
        load(WINDOW, base)
#else
        skip
#endif
    fi;
    assert(base);
    assert((accessible & need) == need);
    finished++
}

init
{
    atomic {
        run user(0, 1);
        run user(1, 2);
        run user(2, 1)
    }
    finished == 3 && delayed[0] == 0 && delayed[1] == 0 && delayed[2] == 0 && !locked;
    assert(mem[CHUNKS] == 3)
}
