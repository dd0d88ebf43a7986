// SPDX-License-Identifier: MIT
// link: none
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/program.c"

static char top[64];

static const char *in_top(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t size, mode_t mode)
{
    int fd = open(in_top(name), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void write_text(const char *name, const char *text, mode_t mode)
{
    write_file(name, text, strlen(text), mode);
}

// A program header table of one entry behind a header that is right otherwise.
static void write_elf(const char *name, unsigned char class, uint32_t segment)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
    } file = {0};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_true(read_header(fd, &file.header));
    close(fd);
    file.header.e_ident[EI_CLASS] = class;
    file.header.e_phoff = sizeof(file.header);
    file.header.e_phnum = 1;
    file.segment.p_type = segment;
    write_file(name, &file, sizeof(file), 0700);
}

static const char *reason_for(const char *path)
{
    static char reason[PATH_MAX + 256];
    struct dock_program program;

    assert_int_equal(dock_program_find(path, &program), 0);
    return dock_program_takes_preload(&program, reason, sizeof(reason)) == 0 ? NULL : reason;
}

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/drydock-program-XXXXXX");
    return mkdtemp(top) ? setenv("PATH", top, 1) : -1;
}

static int drop_top(void **state)
{
    char command[128];

    (void)state;
    setenv("PATH", "/bin:/usr/bin", 1);
    snprintf(command, sizeof(command), "rm -r '%s'", top);
    return system(command);
}

static void find_tells_missing_from_not_executable(void **state)
{
    struct dock_program program;

    (void)state;
    write_text("plain", "text", 0600);
    write_text("tool", "#!/bin/sh\n", 0700);
    assert_int_equal(dock_program_find("absent", &program), -ENOENT);
    assert_int_equal(dock_program_find("", &program), -ENOENT);
    assert_int_equal(dock_program_find(in_top("absent"), &program), -ENOENT);
    assert_int_equal(dock_program_find("plain", &program), -EACCES);
    assert_int_equal(dock_program_find(top, &program), -EACCES);
    assert_int_equal(dock_program_find("tool", &program), 0);
    assert_string_equal(program.path, in_top("tool"));
}

static void find_goes_on_past_what_it_may_not_run(void **state)
{
    struct dock_program program;
    char path[256];

    (void)state;
    write_text("sh", "text", 0600);
    snprintf(path, sizeof(path), "%s:/bin", top);
    setenv("PATH", path, 1);
    assert_int_equal(dock_program_find("sh", &program), 0);
    assert_string_equal(program.path, "/bin/sh");
}

static void a_dynamic_program_and_its_script_are_taken(void **state)
{
    (void)state;
    write_text("script", "#! /bin/sh -e\n", 0700);
    write_text("no-magic", "echo\n", 0700);
    write_elf("dynamic", ELFCLASS64, PT_INTERP);
    if (getenv("DRYDOCK_EMULATED")) // the host's own shell is for another processor there
        skip();
    assert_null(reason_for("/bin/sh"));
    assert_null(reason_for("script"));
    assert_null(reason_for("no-magic"));
    assert_null(reason_for("dynamic"));
}

static void a_static_program_is_refused_also_behind_a_script(void **state)
{
    char text[300];

    (void)state;
    write_elf("static", ELFCLASS64, PT_LOAD);
    snprintf(text, sizeof(text), "#!%s\n", in_top("static"));
    write_text("script", text, 0700);
    assert_non_null(strstr(reason_for("static"), "statically linked"));
    assert_non_null(strstr(reason_for("script"), "is a script for"));
    assert_non_null(strstr(reason_for("script"), "statically linked"));
}

static void a_program_of_another_word_size_is_refused(void **state)
{
    (void)state;
    write_elf("small", ELFCLASS32, PT_INTERP);
    assert_non_null(strstr(reason_for("small"), "another kind of machine"));
}

static void a_set_user_id_program_of_somebody_else_is_refused(void **state)
{
    (void)state;
    write_elf("raised", ELFCLASS64, PT_INTERP);
    if (chown(in_top("raised"), 65534, (gid_t)-1) != 0 || privilege_ignored(top))
        skip();
    assert_int_equal(chmod(in_top("raised"), 04755), 0);
    assert_non_null(strstr(reason_for("raised"), "set-user-ID"));
    assert_int_equal(chmod(in_top("raised"), 0755), 0);
    assert_null(reason_for("raised"));
}

static void a_truncated_or_looping_file_is_survived(void **state)
{
    char text[300];

    (void)state;
    write_text("stub", "\177ELF", 0700);
    write_text("short", "#!", 0700);
    write_text("blank", "#!   \n", 0700);
    snprintf(text, sizeof(text), "#!%s\n", in_top("loop"));
    write_text("loop", text, 0700);
    assert_null(reason_for("stub"));
    assert_null(reason_for("short"));
    assert_null(reason_for("blank"));
    assert_null(reason_for("loop"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(find_tells_missing_from_not_executable, make_top, drop_top),
        cmocka_unit_test_setup_teardown(find_goes_on_past_what_it_may_not_run, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_dynamic_program_and_its_script_are_taken, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_static_program_is_refused_also_behind_a_script, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_program_of_another_word_size_is_refused, make_top, drop_top),
        cmocka_unit_test_setup_teardown(a_set_user_id_program_of_somebody_else_is_refused, make_top,
                                        drop_top),
        cmocka_unit_test_setup_teardown(a_truncated_or_looping_file_is_survived, make_top, drop_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
