// SPDX-License-Identifier: MIT
// What needs no device: the log as the program sees it, EIDs out of text and numbers, statistics, words.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ub/umdk/urma/urma_api.h>
#include <ub/umdk/urma/urma_perf.h>
#include <ub/umdk/urma/urma_types_str.h>

// The two log functions that programs of UMDK call beside the public ones.
void urma_log(const char *function, int line, urma_vlog_level_t level, const char *format, ...);
bool urma_log_drop(urma_vlog_level_t level);

static struct {
    int calls, level, line;
    char file[64], function[64], text[300];
} told;

static void plain(int level, char *message)
{
    told.calls++;
    told.level = level;
    snprintf(told.text, sizeof(told.text), "%s", message);
    message[0] = '!'; // ours to write: the argument is not const
}

static void located(int level, const char *file, const char *function, int line, char *message)
{
    plain(level, message);
    told.line = line;
    snprintf(told.file, sizeof(told.file), "%s", file);
    snprintf(told.function, sizeof(told.function), "%s", function);
}

static int quiet(void **state)
{
    (void)state;
    memset(&told, 0, sizeof(told));
    urma_log_set_level(URMA_VLOG_LEVEL_INFO);
    urma_log_set_thread_tag("-");
    return (int)urma_unregister_log_func();
}

static void a_refused_call_is_told_to_the_programs_function(void **state)
{
    (void)state;
    assert_int_equal(urma_register_log_func(plain), URMA_SUCCESS);
    assert_int_equal(urma_str_to_eid(NULL, NULL), -EINVAL);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.level, URMA_VLOG_LEVEL_INFO);
    assert_non_null(strstr(told.text, "urma_str_to_eid"));
}

static void the_level_drops_what_is_less_urgent(void **state)
{
    (void)state;
    assert_int_equal(urma_log_get_level(), URMA_VLOG_LEVEL_INFO);
    assert_int_equal(urma_register_log_func(plain), URMA_SUCCESS);
    urma_log_set_level(URMA_VLOG_LEVEL_ERR);
    assert_true(urma_log_drop(URMA_VLOG_LEVEL_WARNING));
    assert_false(urma_log_drop(URMA_VLOG_LEVEL_ERR));
    urma_log(__func__, __LINE__, URMA_VLOG_LEVEL_WARNING, "dropped");
    urma_str_to_eid(NULL, NULL);
    assert_int_equal(told.calls, 0);
    urma_log_set_level((urma_vlog_level_t)99);
    assert_int_equal(urma_log_get_level(), URMA_VLOG_LEVEL_ERR);
    urma_log_set_level(URMA_VLOG_LEVEL_EMERG);
    assert_int_equal(urma_log_get_level(), URMA_VLOG_LEVEL_EMERG);
}

static void a_located_function_gets_the_place_and_replaces_the_plain_one(void **state)
{
    (void)state;
    assert_int_equal(urma_register_log_func(plain), URMA_SUCCESS);
    assert_int_equal(urma_register_loc_log_func(located), URMA_SUCCESS);
    urma_log("somewhere", 42, URMA_VLOG_LEVEL_ERR, "number %d\n", 7);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.line, 42);
    assert_string_equal(told.function, "somewhere");
    assert_string_equal(told.text, "number 7");
    assert_int_equal(urma_unregister_log_func(), URMA_SUCCESS);
    urma_str_to_eid(NULL, NULL);
    assert_int_equal(told.calls, 1);
}

static void a_thread_tag_stands_in_its_lines(void **state)
{
    char longest[URMA_MAX_NAME + 1];

    (void)state;
    assert_string_equal(urma_log_get_thread_tag(), "-");
    urma_log_set_thread_tag("worker");
    assert_int_equal(urma_register_log_func(plain), URMA_SUCCESS);
    urma_log("f", 1, URMA_VLOG_LEVEL_ERR, "hello");
    assert_string_equal(told.text, "[worker] hello");
    urma_log_set_thread_tag(NULL);
    memset(longest, 'x', sizeof(longest));
    longest[URMA_MAX_NAME] = '\0';
    urma_log_set_thread_tag(longest);
    assert_string_equal(urma_log_get_thread_tag(), "worker");
}

static void no_function_is_refused(void **state)
{
    (void)state;
    assert_int_equal(urma_register_log_func(NULL), URMA_EINVAL);
    assert_int_equal(urma_register_loc_log_func(NULL), URMA_EINVAL);
    assert_int_equal(urma_unregister_log_func(), URMA_SUCCESS);
}

static void text_becomes_an_eid(void **state)
{
    static const struct {
        const char *text;
        int expected;
        uint8_t last[8]; // the second half of the EID
    } rows[] = {
        {"::1", 0, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"fe80::1234", 0, {0, 0, 0, 0, 0, 0, 0x12, 0x34}},
        {"10.0.0.1", 0, {0, 0, 0xff, 0xff, 10, 0, 0, 1}},
        {"0x1f", 0, {0, 0, 0xff, 0xff, 0, 0, 0, 0x1f}},
        {"4294967295", 0, {0, 0, 0xff, 0xff, 255, 255, 255, 255}},
        {"4294967296", -EINVAL, {0}},
        {"-12", -EINVAL, {0}},
        {"12", -EINVAL, {0}},
        {"", -EINVAL, {0}},
        {"zzzz", -EINVAL, {0}},
        {"10.0.0.256", -EINVAL, {0}},
        {"1:2:3", -EINVAL, {0}},
        {NULL, -EINVAL, {0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        urma_eid_t eid = {.raw = {0}};
        int got = urma_str_to_eid(rows[i].text, &eid);

        if (got != rows[i].expected || memcmp(eid.raw + 8, rows[i].last, 8) != 0)
            fail_msg("'%s': expected %d, got %d, EID " EID_FMT, rows[i].text, rows[i].expected, got,
                     EID_ARGS(eid));
    }
    assert_int_equal(urma_str_to_eid("::1", NULL), -EINVAL);
}

static void a_number_becomes_a_mapped_eid(void **state)
{
    static const uint8_t expected[16] = {[10] = 0xff, [11] = 0xff, [12] = 0x0a, [15] = 1};
    urma_eid_t eid;

    (void)state;
    memset(&eid, 0xaa, sizeof(eid));
    urma_u32_to_eid(0x0a000001, &eid);
    assert_memory_equal(eid.raw, expected, sizeof(expected));
    urma_u32_to_eid(1, NULL);
}

static void statistics_want_room(void **state)
{
    char text[4096] = "";
    uint32_t room = 3;

    (void)state;
    assert_int_equal(urma_stop_perf(), URMA_SUCCESS);
    assert_int_equal(urma_start_perf(), URMA_SUCCESS);
    assert_int_equal(urma_start_perf(), URMA_SUCCESS);
    assert_int_equal(urma_get_perf_info(NULL, &room), URMA_EINVAL);
    assert_int_equal(urma_get_perf_info(text, NULL), URMA_EINVAL);
    assert_int_equal(urma_get_perf_info(text, &room), URMA_EINVAL);
    assert_string_equal(text, "");
    room = sizeof(text);
    assert_int_equal(urma_get_perf_info(text, &room), URMA_SUCCESS);
    assert_int_equal(room, strlen(text) + 1);
    assert_non_null(strstr(text, "poll_jfc"));
    assert_int_equal(urma_stop_perf(), URMA_SUCCESS);
}

static void words_for_numbers_end_where_the_table_ends(void **state)
{
    (void)state;
    assert_string_equal(urma_mtu_to_string(URMA_MTU_4096), "MTU_4096");
    assert_string_equal(urma_mtu_to_string((urma_mtu_t)0), "Invalid Value");
    assert_string_equal(urma_mtu_to_string((urma_mtu_t)7), "Invalid Value");
    assert_string_equal(urma_port_state_to_string(URMA_PORT_ACTIVE), "ACTIVE");
    assert_string_equal(urma_port_state_to_string((urma_port_state_t)6), "Invalid Value");
    assert_string_equal(urma_speed_to_string(URMA_SP_2_5G), "SP_2.5G");
    assert_string_equal(urma_speed_to_string((urma_speed_t)14), "Invalid Value");
    assert_string_equal(urma_link_width_to_string(URMA_LINK_X32), "LINK_X32");
    assert_string_equal(urma_link_width_to_string((urma_link_width_t)3), "Invalid Value");
    assert_string_equal(urma_tp_type_en_to_string((union urma_tp_type_en){.bs.ctp = 1}), "CTP");
    assert_string_equal(urma_tp_type_en_to_string((union urma_tp_type_en){.value = 3}), "Invalid Value");
    assert_string_equal(urma_device_feat_to_string(0), "OUT_OF_ORDER");
    assert_string_equal(urma_device_feat_to_string(URMA_DEVICE_FEAT_NUM), "Invalid Value");
    assert_string_equal(urma_atomic_feat_to_string(6), "fetch_and_xor");
    assert_string_equal(urma_atomic_feat_to_string(URMA_ATOMIC_FEAT_NUM), "Invalid Value");
    assert_string_equal(urma_trans_mode_to_string(URMA_TM_UM), "UM(Unreliable message)");
    assert_string_equal(urma_trans_mode_to_string((urma_transport_mode_t)3), "Invalid Value");
    assert_string_equal(urma_tp_type_to_string(URMA_TRANSPORT_UB), "UB");
    assert_string_equal(urma_tp_type_to_string(URMA_TRANSPORT_INVALID), "Invalid Value");
    assert_string_equal(urma_congestion_ctrl_alg_to_string(9), "CUSTOM_2");
    assert_string_equal(urma_congestion_ctrl_alg_to_string(10), "Invalid Value");
    assert_string_equal(urma_jfc_state_to_string(2), "ERROR");
    assert_string_equal(urma_jetty_state_to_string(2), "SUSPENDED");
    assert_string_equal(urma_jfr_state_to_string(3), "Invalid Value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_refused_call_is_told_to_the_programs_function, quiet),
        cmocka_unit_test_setup(the_level_drops_what_is_less_urgent, quiet),
        cmocka_unit_test_setup(a_located_function_gets_the_place_and_replaces_the_plain_one, quiet),
        cmocka_unit_test_setup(a_thread_tag_stands_in_its_lines, quiet),
        cmocka_unit_test_setup(no_function_is_refused, quiet),
        cmocka_unit_test_setup(text_becomes_an_eid, quiet),
        cmocka_unit_test_setup(a_number_becomes_a_mapped_eid, quiet),
        cmocka_unit_test_setup(statistics_want_room, quiet),
        cmocka_unit_test_setup(words_for_numbers_end_where_the_table_ends, quiet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
