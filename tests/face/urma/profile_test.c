// SPDX-License-Identifier: MIT
// A profile is a matter of verbs: where URMA's text names the code, it is the same under every profile.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "face/urma/lib/uend.h"

static void a_full_queue_is_no_memory(void **state)
{
    struct uend_options o = {.mode = URMA_TM_RM, .depth = 7};
    struct uend l, r;
    struct uwr w;

    (void)state;
    upair_open(&l, &r, &o);
    uend_wr(&l, &w, URMA_OPC_WRITE, 1, 0, 8);
    for (unsigned i = 0; i < 7; i++)
        CHECK_INT(uend_post(&l, &w.wr, NULL), 0);
    CHECK_INT(uend_post(&l, &w.wr, NULL), URMA_ENOMEM);
    upair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_is_no_memory),
    };

    setenv("DRYDOCK_PROFILE", "udma", 1); // the one that verbs programs see another code under
    return cmocka_run_group_tests_name("urma under a profile", tests, NULL, NULL);
}
