// SPDX-License-Identifier: MIT
// A child process plays a device; look_all() sees it from outside, as `drydock show` does.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "arena/arena.h"
#include "cli/look.c"
#include "cli/show_json.c"

static char top[64];
static struct dock_rundir dir;
static pid_t child;

static struct dock_qrec *make_records(struct dock_arena *arena, struct dock_port *port)
{
    uint64_t offset;
    struct dock_qrec *rec;

    if (dock_arena_alloc(arena, BLOCK_QUEUES * sizeof(*rec), 64, &offset))
        return NULL;
    rec = dock_arena_at(arena, offset);
    dock_publish64(&port->block[dock_who_slot(port->who)], offset);
    return rec;
}

static void make_pair(struct dock_qrec *rec, dock_who who)
{
    rec->id = dock_who_slot(who) << DOCK_BLOCK_SHIFT | 3;
    rec->kind_service = DOCK_QUEUE_PAIR << 8 | DOCK_RC;
    rec->sq_depth = 128;
    dock_set32(&rec->peer_id, 77);
    dock_set32(&rec->peer_who, who);
    dock_set64(&rec->executed, 5);
    dock_set64(&rec->bytes_out, (uint64_t)1 << 40);
    rec->sum = dock_qrec_sum(rec);
    dock_publish32(&rec->state, DOCK_RTS);
}

// Serves its arena until it is killed. `version` other than ours makes a device that show must refuse.
static void play_device(uint32_t version, int ready)
{
    struct dock_idtable table;
    struct dock_gift gift = {.pid = getpid(), .pidfd = -1, .bell_fd = eventfd(0, EFD_CLOEXEC)};
    struct dock_arena arena;
    struct dock_port *port;
    struct dock_qrec *rec;
    int listener;

    if (dock_idtable_open(&dir, &table) || dock_idtable_join(&table, &gift.who) ||
        dock_arena_create(&arena, 0, sizeof(*port)) || dock_gift_listen(&dir, gift.who, &listener))
        _exit(1);
    port = dock_arena_at(&arena, 0);
    port->version = version;
    port->who = gift.who;
    port->started_ns = dock_now_ns();
    memcpy(port->program, "a \"quoted\" name!", sizeof(port->program));
    rec = make_records(&arena, port);
    if (!rec)
        _exit(1);
    make_pair(&rec[3], gift.who);
    make_pair(&rec[9], gift.who);
    rec[9].id += 6; // and no new checksum
    dock_set64(&port->moment[DOCK_AT_STATE], 4);
    dock_publish64(&port->magic, DOCK_PORT_MAGIC);
    gift.shift = arena.view.shift;
    gift.arena_fd = arena.view.fd;
    if (write(ready, "r", 1) != 1)
        _exit(1);
    for (;;) {
        struct pollfd caller = {.fd = listener, .events = POLLIN};

        poll(&caller, 1, -1);
        dock_gift_serve(listener, &gift);
    }
}

static void start_device(uint32_t version)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0)
        play_device(version, ready[1]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
}

static int set_up(void **state)
{
    (void)state;
    child = 0;
    strcpy(top, "/tmp/drydock-look-XXXXXX");
    return mkdtemp(top) ? dock_rundir_open(top, &dir) : -1;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    if (child) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    dock_rundir_close(&dir);
    snprintf(command, sizeof(command), "rm -r '%s'", top);
    return system(command);
}

static void an_empty_directory_has_no_device(void **state)
{
    struct look look;

    (void)state;
    assert_int_equal(look_all(&dir, &look), 0);
    assert_int_equal(look.ndevices, 0);
    look_free(&look);
}

static void a_live_device_is_read(void **state)
{
    struct look look;
    const struct look_device *d;

    (void)state;
    start_device(DOCK_PORT_VERSION);
    assert_int_equal(look_all(&dir, &look), 0);
    assert_int_equal(look.ndevices, 1);
    d = &look.device[0];
    assert_int_equal(d->answer, LOOK_READ);
    assert_int_equal(d->pid, child);
    assert_string_equal(d->program, "a \"quoted\" name!");
    assert_int_equal(d->moment[DOCK_AT_STATE], 4);
    assert_int_equal(d->nqueues, 2);
    assert_int_equal(d->queue[0].id & 255, 3);
    assert_int_equal(d->queue[0].depth, 128);
    assert_int_equal(d->queue[0].executed, 5);
    assert_int_equal(d->queue[0].bytes_out, (uint64_t)1 << 40);
    assert_int_equal(d->queue[0].peer_id, 77);
    assert_string_equal(look_state_name(d->queue[0].state), "RTS");
    assert_string_equal(look_service_name(d->queue[0].service), "RC");
    assert_string_equal(look_kind_name(d->queue[0].kind), "pair");
    look_free(&look);
}

static void a_record_whose_checksum_does_not_fit_is_marked(void **state)
{
    struct look look;

    (void)state;
    start_device(DOCK_PORT_VERSION);
    assert_int_equal(look_all(&dir, &look), 0);
    assert_int_equal(look.device[0].nqueues, 2);
    assert_false(look.device[0].queue[0].damaged);
    assert_true(look.device[0].queue[1].damaged);
    look_free(&look);
}

static void a_stopped_device_does_not_hold_us_up(void **state)
{
    uint64_t begun = dock_now_ns();
    struct look look;

    (void)state;
    start_device(DOCK_PORT_VERSION);
    kill(child, SIGSTOP);
    assert_int_equal(look_all(&dir, &look), 0);
    assert_int_equal(look.ndevices, 1);
    assert_int_equal(look.device[0].answer, LOOK_SILENT);
    assert_true(dock_now_ns() - begun < 5000000000u);
    look_free(&look);
}

static void a_device_of_another_version_is_not_read(void **state)
{
    struct look look;

    (void)state;
    start_device(DOCK_PORT_VERSION + 1);
    assert_int_equal(look_all(&dir, &look), 0);
    assert_int_equal(look.device[0].answer, LOOK_REFUSED);
    assert_int_equal(look.device[0].nqueues, 0);
    look_free(&look);
}

static void a_dead_device_is_not_shown(void **state)
{
    struct look look;

    (void)state;
    start_device(DOCK_PORT_VERSION);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    child = 0;
    assert_int_equal(look_all(&dir, &look), 0);
    assert_int_equal(look.ndevices, 0);
    look_free(&look);
}

static void json_escapes_what_a_program_is_called(void **state)
{
    char text[256] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    (void)state;
    assert_non_null(to);
    put_text(to, "a\"b\\c\n\xe4");
    fclose(to);
    assert_string_equal(text, "\"a\\u0022b\\u005cc\\u000a\\u00e4\"");
}

static void values_without_a_name_are_told_so(void **state)
{
    (void)state;
    assert_string_equal(look_state_name(DOCK_GONE + 1), "?");
    assert_string_equal(look_service_name(255), "?");
    assert_string_equal(look_kind_name(DOCK_QUEUE_FREE), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_directory_has_no_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_live_device_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_record_whose_checksum_does_not_fit_is_marked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stopped_device_does_not_hold_us_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_device_of_another_version_is_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_device_is_not_shown, set_up, tear_down),
        cmocka_unit_test(json_escapes_what_a_program_is_called),
        cmocka_unit_test(values_without_a_name_are_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
