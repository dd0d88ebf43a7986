// SPDX-License-Identifier: MIT
// The identity is one snapshot per process: each case asks in a child of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/identity.h"

// What `look` says in a child with DRYDOCK_NAME and DRYDOCK_PROFILE set so (NULL: not set).
static int asked(const char *name, const char *profile, int (*look)(const struct dock_identity *))
{
    int status;
    pid_t child = fork();

    if (!child) {
        name ? setenv("DRYDOCK_NAME", name, 1) : unsetenv("DRYDOCK_NAME");
        profile ? setenv("DRYDOCK_PROFILE", profile, 1) : unsetenv("DRYDOCK_PROFILE");
        _exit(look(dock_identity()));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int is_default(const struct dock_identity *id)
{
    return !strcmp(id->name, "drydock0");
}

static int is_mlx5_0(const struct dock_identity *id)
{
    return !strcmp(id->name, "mlx5_0");
}

static void the_name_is_drydock0_unless_renamed(void **state)
{
    (void)state;
    assert_true(asked(NULL, NULL, is_default));
    assert_true(asked("mlx5_0", NULL, is_mlx5_0));
}

// The name becomes a file name and a word in other programs' output.
static void a_name_that_is_no_device_name_is_not_taken(void **state)
{
    static const char *const bad[] = {"",
                                      "a b",
                                      "../x",
                                      "a/b",
                                      ".hidden",
                                      "x\n",
                                      "012345678901234567890123456789012345678901234567890123456789012345"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(asked(bad[i], NULL, is_default));
}

static int gids_in_order(const struct dock_identity *id)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, zero[16];

    if (id->gids < 2 || id->gids >= DOCK_GID_TABLE || id->gid[0].raw[0] != 0xfe || id->gid[0].raw[1] != 0x80)
        return 0;
    for (uint32_t i = 0; i < DOCK_GID_TABLE; i++) {
        if (i && i < id->gids && memcmp(id->gid[i].raw, mapped, sizeof mapped))
            return 0;
        if (i >= id->gids && memcmp(id->gid[i].raw, zero, sizeof zero))
            return 0;
        if (dock_gid_filled(i) != (i < id->gids))
            return 0;
    }
    return !dock_gid_filled(DOCK_GID_TABLE) && !dock_gid_filled(UINT32_MAX);
}

static void gids_are_link_local_then_ipv4_then_at_least_one_empty(void **state)
{
    (void)state;
    assert_true(asked(NULL, NULL, gids_in_order));
}

static int is_mellanox(const struct dock_identity *id)
{
    return id->vendor_id == 0x02c9 && id->vendor_part_id == 4119;
}

static void the_vendor_is_ours_but_for_the_mlx5_profile(void **state)
{
    (void)state;
    assert_false(asked(NULL, NULL, is_mellanox));
    assert_false(asked(NULL, "strict", is_mellanox));
    assert_true(asked(NULL, "mlx5", is_mellanox));
}

static int guid_low(const struct dock_identity *id)
{
    return id->guid[7] ^ id->guid[6] ^ id->guid[5] ^ id->guid[2] ^ id->guid[1] ^ id->guid[0];
}

static void every_process_of_the_host_says_the_same_guid(void **state)
{
    (void)state;
    assert_int_equal(asked(NULL, NULL, guid_low), asked("other", NULL, guid_low));
    assert_int_equal(dock_identity()->guid[3], 0xff);
    assert_int_equal(dock_identity()->guid[4], 0xfe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_drydock0_unless_renamed),
        cmocka_unit_test(a_name_that_is_no_device_name_is_not_taken),
        cmocka_unit_test(gids_are_link_local_then_ipv4_then_at_least_one_empty),
        cmocka_unit_test(the_vendor_is_ours_but_for_the_mlx5_profile),
        cmocka_unit_test(every_process_of_the_host_says_the_same_guid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
