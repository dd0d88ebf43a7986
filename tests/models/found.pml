/* SPDX-License-Identifier: MIT
 * A key that is taken away (src/device/mr.c, src/fabric/host/keys.c): its word says that it is new until somebody finds
 * it, who takes that out by a read-modify-write before he uses what it names. Who takes the key away makes the word odd by
 * a read-modify-write too, and waits for those at work only if it was not new any more. No byte moves after.
 *
 * switches: NO_MARK PLAIN_MARK PLAIN_TAKE NO_WAIT
 *   NO_MARK     who finds the key does not say so
 *   PLAIN_MARK  he stores what he read, less the mark
 *   PLAIN_TAKE  who takes it away reads the word, then stores it
 *   NO_WAIT     he waits for nobody
 *
 * pairs: device/mr.c: dock_lkey_found dock_lkey_clear dock_segrec_clear; fabric/host/keys.c: found.
 */
#define VARS 2
#define PROCS 2
#define KEY 0 /* 2: stands and is new, 0: stands, odd: taken away */
#define AT_WORK 1
#include "weak.pml"

bool gone;

proctype finder(byte me)
{
    byte seen;

    store(AT_WORK, 1);
    load(KEY, seen); /* the light fence: the other one's heavy fence stands for it */
#ifdef PLAIN_MARK
    if
    :: seen == 2 -> store(KEY, 0); seen = 0
    :: else
    fi;
#else
#ifndef NO_MARK
    if
    :: seen == 2 ->
        atomic {
            ORDERED;
            seen = mem[KEY];
            if
            :: seen == 2 -> mem[KEY] = 0; seen = 0
            :: else
            fi
        }
    :: else
    fi;
#endif
#endif
    if
    :: seen % 2 == 0 -> assert(!gone) /* a byte moves */
    :: else
    fi;
    release(AT_WORK, 0)
}

proctype owner(byte me)
{
    byte was, busy;

#ifdef PLAIN_TAKE
    load(KEY, was);
    store(KEY, was + 1);
    fence();
#else
    atomic {
        ORDERED;
        was = mem[KEY];
        mem[KEY] = was + 1
    }
#endif
    if
#ifndef NO_WAIT
    :: was != 2 ->
        fence_everywhere(); /* dock_quiesce */
        do
        :: load(AT_WORK, busy);
            if
            :: busy == 0 -> break
            :: else
            fi
        od
#endif
    :: was == 2 -> skip
#ifdef NO_WAIT
    :: else
#endif
    fi;
    gone = true
}

init
{
    atomic {
        mem[KEY] = 2;
        run finder(0);
        run owner(1)
    }
}
