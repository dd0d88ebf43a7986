// SPDX-License-Identifier: MIT
// Programs that open libibverbs at run time ask for names with a version. Each row of the symbol list is
// found under its version; where a name has two, they are two functions, and an unversioned look-up gives
// the default. link: none
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
    char name[64], version[32], is_default[8];
};

static struct row rows[256];
static size_t n_rows;
static void *library;

static int load(void **state)
{
    const char *build = getenv("DRYDOCK_BUILD");
    char path[512], line[256];
    FILE *csv = fopen("tests/abi/data/libibverbs_symbols.csv", "r");

    (void)state;
    snprintf(path, sizeof path, "%s/lib/libibverbs.so.1", build ? build : "build/dev");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !csv) {
        print_error("cannot open %s (%s) or the symbol list (run from the top of the tree)\n", path,
                    dlerror());
        return -1;
    }
    if (!fgets(line, sizeof line, csv))
        return -1;
    while (n_rows < 256 && fgets(line, sizeof line, csv)) {
        struct row *r = &rows[n_rows];
        if (sscanf(line, "%63[^,],%31[^,],%7[^,]", r->name, r->version, r->is_default) == 3)
            n_rows++;
    }
    fclose(csv);
    return 0;
}

static void every_row_is_found_under_its_version(void **state)
{
    (void)state;
    assert_int_equal(n_rows, 180);
    for (size_t i = 0; i < n_rows; i++)
        if (!dlvsym(library, rows[i].name, rows[i].version))
            fail_msg("dlvsym(\"%s\", \"%s\") finds nothing: %s", rows[i].name, rows[i].version, dlerror());
}

static void an_old_twin_is_another_function(void **state)
{
    unsigned twins = 0;

    (void)state;
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].is_default[0] == 'y')
            continue;
        void *now = dlsym(library, rows[i].name);
        void *old = dlvsym(library, rows[i].name, rows[i].version);
        twins++;
        if (!strcmp(rows[i].name, "ibv_register_driver"))
            continue; // has no successor under the same name
        if (!now || now == old)
            fail_msg("%s: default %p, @%s %p: expected two functions", rows[i].name, now, rows[i].version,
                     old);
    }
    assert_int_equal(twins, 34);
}

static void an_unversioned_look_up_gives_the_default(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].is_default[0] == 'y')
            assert_ptr_equal(dlsym(library, rows[i].name), dlvsym(library, rows[i].name, rows[i].version));
}

static void a_version_that_does_not_exist_finds_nothing(void **state)
{
    (void)state;
    assert_null(dlvsym(library, "ibv_alloc_pd", "IBVERBS_1.2"));
    assert_null(dlvsym(library, "ibv_query_port_speed", "IBVERBS_1.16"));
}

static void the_first_abi_shows_no_device(void **state)
{
    void **(*list)(int *) = (void **(*)(int *))dlvsym(library, "ibv_get_device_list", "IBVERBS_1.0");
    int n = 7;

    (void)state;
    assert_null(list(&n));
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found_under_its_version),
        cmocka_unit_test(an_old_twin_is_another_function),
        cmocka_unit_test(an_unversioned_look_up_gives_the_default),
        cmocka_unit_test(a_version_that_does_not_exist_finds_nothing),
        cmocka_unit_test(the_first_abi_shows_no_device),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
