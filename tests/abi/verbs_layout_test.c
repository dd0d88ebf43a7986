// SPDX-License-Identifier: MIT
// The structures that header inlines read without asking any function: their sizes and the places that
// matter, as Debian 12's programs were compiled with them. A newer header that moves one of these breaks
// those programs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

static const struct {
    const char *what;
    size_t got, expected;
} places[] = {
#define SIZE(type, bytes)                                                                                    \
    {                                                                                                        \
        "sizeof " #type, sizeof(struct type), bytes                                                          \
    }
#define AT(type, field, bytes)                                                                               \
    {                                                                                                        \
        "offset of " #type "." #field, offsetof(struct type, field), bytes                                   \
    }
    SIZE(ibv_device, 664),
    SIZE(ibv_context, 328),
    SIZE(verbs_context, 648),
    SIZE(ibv_qp, 160),
    SIZE(ibv_qp_ex, 352),
    SIZE(ibv_cq, 128),
    SIZE(ibv_cq_ex, 288),
    SIZE(ibv_srq, 128),
    SIZE(ibv_mr, 48),
    SIZE(ibv_wc, 48),
    SIZE(ibv_send_wr, 128),
    SIZE(ibv_port_attr, 52),
    SIZE(ibv_device_attr, 232),
    SIZE(ibv_device_attr_ex, 400),
    SIZE(ibv_gid_entry, 32),
    AT(verbs_context, sz, 312),
    AT(verbs_context, context, 320),
    AT(ibv_context, ops, 8),
    AT(ibv_qp_ex, qp_base, 0),
    AT(ibv_cq_ex, comp_mask, sizeof(struct ibv_cq)),
};

static void structures_have_the_places_that_programs_were_compiled_with(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].got != places[i].expected)
            fail_msg("%s: expected %zu, got %zu", places[i].what, places[i].expected, places[i].got);
}

// The extended forms begin with the plain ones: a pointer to one is a pointer to the other.
static void an_extended_queue_begins_like_a_plain_one(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct ibv_cq_ex, context), offsetof(struct ibv_cq, context));
    assert_int_equal(offsetof(struct ibv_cq_ex, channel), offsetof(struct ibv_cq, channel));
    assert_int_equal(offsetof(struct ibv_cq_ex, cq_context), offsetof(struct ibv_cq, cq_context));
    assert_int_equal(offsetof(struct ibv_cq_ex, cqe), offsetof(struct ibv_cq, cqe));
    assert_int_equal(offsetof(struct ibv_cq_ex, comp_events_completed),
                     offsetof(struct ibv_cq, comp_events_completed));
    assert_int_equal(offsetof(struct ibv_qp_init_attr_ex, sq_sig_all),
                     offsetof(struct ibv_qp_init_attr, sq_sig_all));
}

int main(void)
{
#ifndef __x86_64__
    return 77; // the numbers are those of x86-64: a mutex has another size elsewhere
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures_have_the_places_that_programs_were_compiled_with),
        cmocka_unit_test(an_extended_queue_begins_like_a_plain_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
