// SPDX-License-Identifier: MIT
// What tests of adoption have in common: a device that adopts, and a request carried to its end.
#ifndef TESTS_LIB_ADOPTING_H
#define TESTS_LIB_ADOPTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/log.h"
#include "device/internal.h"
#include "lib/duo.h"

// The whole test is skipped where memory is not adopted.
static inline void open_adopting(struct dock_dev **dev)
{
    assert_int_equal(dock_dev_open(NULL, dev), 0);
    if ((*dev)->adopt.mode == DOCK_ADOPT_OFF) {
        print_message("memory is not adopted here: %s\n", dock_log_last());
        exit(77);
    }
}

static inline void carry_out(struct end *e, const struct dock_wr *wr)
{
    struct dock_wc wc;

    assert_int_equal(end_post(e, wr), 0);
    assert_true(end_wait(e->scq, &wc, 5000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
}

#endif
