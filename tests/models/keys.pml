/* SPDX-License-Identifier: MIT
 * An entry of the segment table (src/device/mr.c, src/fabric/host/keys.c): its owner makes the generation odd, writes the
 * words, publishes the next even one; who reads takes the generation, copies the words and looks whether their sum holds.
 * What is kept so is used as long as the generation stands. Nothing torn is kept, nor anything under the generation of
 * something else.
 *
 * switches: UNORDERED_ODD NO_ODD UNORDERED_EVEN UNORDERED_LOOK NO_SUM
 *   UNORDERED_ODD   words may be visible before the odd generation
 *   NO_ODD          the generation moves only when the words are written
 *   UNORDERED_EVEN  the even generation may be visible before the words
 *   UNORDERED_LOOK  the reader may copy the words before it takes the generation
 *   NO_SUM          the reader does not look at the sum
 *
 * pairs: device/mr.c: publish_segrec; fabric/direct.h: dock_direct_misses dock_direct_write_word; fabric/host/keys.c: found;
 *   fabric/host/map.c: look_and_lay; fabric/host/send.c: buffer.
 */
#define VARS 3
#define PROCS 2
#define GENERATION 0
#define WORDS 1 /* and 2: that both agree stands for the sum */
#include "weak.pml"

proctype owner(byte me) /* dock_segrec_publish */
{
    byte change;

    for (change : 1 .. 2) {
#ifndef NO_ODD
        store(GENERATION, 2 * change - 1);
#ifndef UNORDERED_ODD
        fence(); /* dock_fence_store */
#endif
#endif
        store(WORDS, change);
        store(WORDS + 1, change);
#ifdef UNORDERED_EVEN
        store(GENERATION, 2 * change)
#else
        release(GENERATION, 2 * change)
#endif
    }
}

proctype reader(byte me)
{
    byte generation, first, second, now;

#ifdef UNORDERED_LOOK
    load(WORDS, first);
    load(WORDS + 1, second);
#endif
    load(GENERATION, generation); /* read_entry */
#ifndef UNORDERED_LOOK
    load(WORDS, first);
    load(WORDS + 1, second);
#endif
    if
#ifdef NO_SUM
    :: generation % 2 == 0 ->
#else
    :: generation % 2 == 0 && first == second ->
#endif
        assert(first == second);
        load(GENERATION, now); /* dock_direct_write */
        assert(now != generation || first == generation / 2)
    :: else
    fi
}

init
{
    atomic {
        run owner(0);
        run reader(1)
    }
}
