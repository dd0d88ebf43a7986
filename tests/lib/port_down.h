// SPDX-License-Identifier: MIT
// A device without an engine, whose port the test takes down and up. Included by few programs, so the
// functions stand here. After cmocka's header.
#ifndef TESTS_LIB_PORT_DOWN_H
#define TESTS_LIB_PORT_DOWN_H

#include "device/internal.h"
#include "device/link.h"
#include "lib/pair.h"

static inline struct dock_dev *open_device(void)
{
    struct dock_config cfg = {.no_engine_thread = true};
    struct dock_dev *dev;

    assert_int_equal(dock_dev_open(&cfg, &dev), 0);
    return dev;
}

static inline void expect(struct dock_cq *cq, uint64_t id, uint32_t status)
{
    struct dock_wc wc;

    assert_true(end_wait(cq, &wc, 10000));
    assert_int_equal(wc.id, id);
    assert_int_equal(wc.status, status);
}

// As the engine does when `drydock ctl port` was called.
static inline void set_port(struct dock_dev *dev, bool down)
{
    struct dock_link link = {.down = down};

    assert_int_equal(dock_link_write(dev->dir.fd, &link), 0);
    dock_link_look(dev, false);
    assert_int_equal(dock_link_down(), down);
}

#endif
