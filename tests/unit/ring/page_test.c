// SPDX-License-Identifier: MIT
// The doorbell page and the notes beside the ring are one format in two words: the device's (ring/page.h) and
// the producers' (include/drydock/direct.h).
#define DRYDOCK_DIRECT_CHECK
#define DRYDOCK_PRODUCER 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena/port.h"
#include "drydock/direct.h"
#include "ring/page.h"

static_assert(sizeof(struct drydock_note) == sizeof(struct dock_note), "a note");
static_assert(offsetof(struct drydock_note, sequence) == offsetof(struct dock_note, sequence), "a note");
static_assert(offsetof(struct drydock_note, sum) == offsetof(struct dock_note, sum), "a note");
static_assert((int)DRYDOCK_STATE_ERROR == (int)DOCK_ERR, "the end of a queue");
static_assert((int)DRYDOCK_FENCE == (int)DOCK_F_FENCE && (int)DRYDOCK_COMPLETE == (int)DOCK_F_COMPLETE &&
                  (int)DRYDOCK_SOLICITED == (int)DOCK_F_SOLICITED,
              "flags");

#define BLOCKS 8u

// A page and a ring in plain memory: where the producer stores is what the device reads.
static void producer_and_device_agree_on_every_place_of_the_page(void **state)
{
    static _Alignas(64) unsigned char ring[BLOCKS * 64], cq[BLOCKS * 64];
    static _Alignas(64) unsigned char room[4096];
    struct dock_page *page = (struct dock_page *)(void *)room;
    _Atomic uint32_t ci = 0, qstate = DOCK_RTS;
    struct drydock_queue q = {.ring = ring,
                              .cq = cq,
                              .doorbell = (_Atomic uint32_t *)(void *)(room + 0x80),
                              .cq_doorbell = &ci,
                              .page = room,
                              .state = &qstate,
                              .blocks = BLOCKS,
                              .cqes = BLOCKS};
    struct drydock_target t = {.segment = 5, .token = 7};
    uint64_t word;

    (void)state;
    assert_int_equal(drydock_post_write(&q, &t, 64, &word, 8, DRYDOCK_COMPLETE), 0);
    assert_int_equal(drydock_ring_whole(&q), 0);
    assert_int_equal((uint16_t)dock_peek64(&page->direct[0]), 1);
    assert_memory_equal(room + 8, ring + 8, 56);

    assert_int_equal(drydock_post_fetch_add(&q, &t, 64, &word, 8, 0), 0);
    drydock_ring(&q);
    assert_int_equal(dock_peek32(&page->doorbell), 3);
    assert_int_equal(dock_peek64(&page->note[1].claim), 1ull << 32 | 1);
    assert_int_equal(dock_peek32(&page->note[1].sequence), 1);
    assert_int_equal(dock_peek32(&page->note[1].sum), dock_note_sum((uint64_t *)(void *)(ring + 64), 2));
    assert_int_equal(dock_peek64(&page->met), 0);

    dock_set64(&page->note[3].claim, 3ull << 32 | 2); // producer 2 wrote the place that is next
    assert_int_equal(drydock_post_write(&q, &t, 64, &word, 8, 0), 0);
    assert_int_equal(dock_peek64(&page->met), 3ull << 32 | 2 << 16 | 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(producer_and_device_agree_on_every_place_of_the_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
