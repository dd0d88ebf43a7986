// SPDX-License-Identifier: MIT
// Segments that are mapped at their import: what stores and loads of the importer do, who may map what, and
// how long the owner must keep it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/urma/lib/uend.h"
#include "unit/arena/vmflags.h"

static bool in_arena; // the owner's memory is adopted

enum {
    AT = 4096 + 100,
    BYTES = 8000,
    ATOMIC_AT = 4000
}; // of the segment in the buffer; neither end at a page's

static const struct uend_options rm = {.mode = URMA_TM_RM};

static urma_target_seg_t *lend(struct uend *e, uint32_t access)
{
    urma_seg_cfg_t cfg = {.va = (uintptr_t)e->buf + AT, .len = BYTES, .token_value = {UEND_TOKEN}};
    urma_target_seg_t *lent;

    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = access;
    lent = urma_register_seg(e->ctx, &cfg);
    CHECK(lent != NULL);
    return lent;
}

static urma_target_seg_t *map(struct uend *e, urma_seg_t *seg, uint32_t token_value, uint64_t at)
{
    urma_import_seg_flag_t flag = {.bs = {.access = ALL_ACCESS, .mapping = 1}};
    urma_token_t token = {token_value};

    errno = 0;
    return urma_import_seg(e->ctx, seg, &token, at, flag);
}

static char *window(const urma_target_seg_t *t)
{
    return (char *)(uintptr_t)t->mva;
}

// The rights of the mapping that `p` lies in, as the kernel tells them.
static void rights_of(const void *p, char out[5])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t lo, hi, at = (uintptr_t)p;
    char line[512];

    CHECK(maps != NULL);
    strcpy(out, "none");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &lo, &hi, out) == 3 && at >= lo && at < hi)
            break;
    fclose(maps);
}

static bool is_shared(const void *p)
{
    char rights[5];

    rights_of(p, rights);
    return !strcmp(rights, "rw-s");
}

static void neither_dumped_nor_inherited(const void *p)
{
    char flags[512];

    vm_flags(p, flags);
    if (flags[0] && (!strstr(flags, " dd") || !strstr(flags, " dc"))) // none under emulation
        check_failed(__FILE__, __LINE__, "flags of a mapping: expected dd and dc, got %s", flags);
}

// ---- bytes, and the owner's end of it

static void owner(int sock)
{
    urma_target_seg_t *lent;
    struct uend e;

    setenv("DRYDOCK_ADOPT", in_arena ? "on" : "off", 1);
    uend_meet(&e, &rm, sock);
    lent = lend(&e, ALL_ACCESS);
    strcpy(e.buf + AT + 8, "from the owner");
    tell(sock, &lent->seg, sizeof lent->seg);
    meet(sock); // it is mapped and written to
    if (in_arena) {
        CHECK(!strcmp(e.buf + AT + 100, "stored") && !strcmp(e.buf + AT + 200, "written"));
        CHECK_INT(*(uint64_t *)(void *)(e.buf + AT + ATOMIC_AT - 4), 5);
        CHECK_INT(urma_unregister_seg(lent), URMA_FAIL); // somebody has it mapped
        strcpy(e.buf + AT + 300, "still there");
    }
    meet(sock);
    meet(sock); // a forked child of the importer has given it back
    if (in_arena)
        CHECK_INT(urma_unregister_seg(lent), URMA_FAIL);
    meet(sock);
    meet(sock); // it is not mapped any more
    CHECK_INT(urma_unregister_seg(lent), 0);
    uend_close(&e);
}

static void mapper(int sock)
{
    urma_target_seg_t *t;
    struct uend e;
    struct uwr w;
    urma_seg_t seg;

    uend_meet(&e, &rm, sock);
    hear(sock, &seg, sizeof seg);
    t = map(&e, &seg, UEND_TOKEN, 0);
    if (!in_arena) {
        CHECK(t == NULL && errno == EOPNOTSUPP);
        for (unsigned i = 0; i < 5; i++)
            meet(sock);
        uend_close(&e);
        return;
    }
    CHECK(t && t->mva && (t->mva & 4095) == (seg.ubva.va & 4095));
    CHECK(!strcmp(window(t) + 8, "from the owner"));
    strcpy(window(t) + 100, "stored");
    strcpy(e.buf, "written");
    uend_wr(&e, &w, URMA_OPC_WRITE, 1, 0, 8);
    w.remote[0] =
        (urma_sge_t){.addr = t->mva + 200, .len = 8, .tseg = t}; // the guide: an address of the mapping
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 1, URMA_CR_SUCCESS, NULL);
    uend_wr(&e, &w, URMA_OPC_FADD, 2, 0, 8); // and stores beside requests are to one memory
    w.remote[0] = (urma_sge_t){.addr = seg.ubva.va + ATOMIC_AT - 4, .len = 8, .tseg = t};
    w.wr.faa.operand = 2;
    *(uint64_t *)(void *)(window(t) + ATOMIC_AT - 4) = 3;
    CHECK_INT(uend_post(&e, &w.wr, NULL), 0);
    ucr_expect(e.jfc, 2, URMA_CR_SUCCESS, NULL);
    meet(sock);
    meet(sock);
    neither_dumped_nor_inherited(window(t));
    neither_dumped_nor_inherited(window(t) + BYTES - 1);
    pid_t child = fork(); // what it gives back is its parent's, and stays
    if (!child)
        _exit(is_shared(window(t)) ? 2 : urma_unimport_seg(t) != URMA_SUCCESS);
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    meet(sock);
    meet(sock);
    CHECK(!strcmp(window(t) + 300, "still there"));
    char *gone = window(t);
    CHECK(is_shared(gone));
    CHECK_INT(urma_unimport_seg(t), 0);
    CHECK(!is_shared(gone));
    meet(sock);
    uend_close(&e);
}

static void stores_and_loads_of_who_maps_it_are_the_owners(void **state)
{
    (void)state;
    two_processes(mapper, owner);
}

static void memory_that_is_not_adopted_is_not_mapped(void **state)
{
    (void)state;
    in_arena = false;
    two_processes(mapper, owner);
    in_arena = true;
}

// ---- who may map what

struct attempt {
    const char *name;
    uint32_t access; // of the segment
    uint32_t token;
    void (*spoil)(urma_seg_t *seg, uint64_t *at);
    int error; // 0: it is mapped
    const char *rights;
};

static void *occupied;

static void nothing(urma_seg_t *seg, uint64_t *at)
{
    (void)seg;
    (void)at;
}

static void longer(urma_seg_t *seg, uint64_t *at)
{
    (void)at;
    seg->len++;
}

static void empty(urma_seg_t *seg, uint64_t *at)
{
    (void)at;
    seg->len = 0;
}

static void another_process(urma_seg_t *seg, uint64_t *at)
{
    (void)at;
    seg->attr.bs.reserved ^= 1u << 16;
}

static void another_id(urma_seg_t *seg, uint64_t *at)
{
    (void)at;
    seg->token_id += 500 << 8;
}

static void where_something_is(urma_seg_t *seg, uint64_t *at)
{
    *at = (uintptr_t)occupied + (seg->ubva.va & 4095);
}

static void across_pages(urma_seg_t *seg, uint64_t *at)
{
    *at = (uintptr_t)occupied + (seg->ubva.va & 4095) + 8;
}

static void in_a_free_place(urma_seg_t *seg, uint64_t *at)
{
    void *p = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED && !munmap(p, 65536));
    *at = (uintptr_t)p + (seg->ubva.va & 4095);
}

static const struct attempt attempts[] = {
    {"all rights", ALL_ACCESS, UEND_TOKEN, nothing, 0, "rw-s"},
    {"to be read", URMA_ACCESS_READ, UEND_TOKEN, nothing, 0, "r--s"},
    {"at a place", ALL_ACCESS, UEND_TOKEN, in_a_free_place, 0, "rw-s"},
    {"at a place that is taken", ALL_ACCESS, UEND_TOKEN, where_something_is, EEXIST, NULL},
    {"at a place within another page", ALL_ACCESS, UEND_TOKEN, across_pages, EINVAL, NULL},
    {"the owner's alone", URMA_ACCESS_LOCAL_ONLY, UEND_TOKEN, nothing, EACCES, NULL},
    {"another token", ALL_ACCESS, UEND_TOKEN + 1, nothing, EACCES, NULL},
    {"a byte more", ALL_ACCESS, UEND_TOKEN, longer, EACCES, NULL},
    {"no byte", ALL_ACCESS, UEND_TOKEN, empty, EINVAL, NULL},
    {"an id that nobody has", ALL_ACCESS, UEND_TOKEN, another_id, EACCES, NULL},
    {"a process that is gone", ALL_ACCESS, UEND_TOKEN, another_process, EHOSTUNREACH, NULL},
};

static void lends(int sock)
{
    struct uend e;

    uend_meet(&e, &rm, sock);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        urma_target_seg_t *lent = lend(&e, attempts[i].access);
        tell(sock, &lent->seg, sizeof lent->seg);
        meet(sock);
        CHECK_INT(urma_unregister_seg(lent), 0); // who was refused holds nothing
    }
    uend_close(&e);
}

static void tries(int sock)
{
    struct uend e;

    uend_meet(&e, &rm, sock);
    occupied = e.buf;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const struct attempt *a = &attempts[i];
        char rights[5] = "";
        uint64_t at = 0;
        urma_seg_t seg;
        hear(sock, &seg, sizeof seg);
        a->spoil(&seg, &at);
        urma_target_seg_t *t = map(&e, &seg, a->token, at);
        int expected = a->error;
        if ((t != NULL) != !expected || errno != expected || (t && at && t->mva != at))
            check_failed(__FILE__, __LINE__, "%s: expected errno %d, got %d, %p", a->name, expected, errno,
                         (void *)t);
        if (t) {
            rights_of(window(t), rights);
            if (strcmp(rights, a->rights))
                check_failed(__FILE__, __LINE__, "%s: expected %s, got %s", a->name, a->rights, rights);
            CHECK_INT(urma_unimport_seg(t), 0);
        }
        meet(sock);
    }
    uend_close(&e);
}

static void rights_token_and_place_decide_who_maps_it(void **state)
{
    (void)state;
    two_processes(tries, lends);
}

// ---- the owner takes it away as soon as it may, again and again: nothing that was stored is lost

enum { ROUNDS = 200 };

static void takes_away(int sock)
{
    unsigned refused = 0;
    uint64_t stored;
    struct uend e;

    uend_meet(&e, &rm, sock);
    uint64_t *word = (uint64_t *)(void *)(e.buf + AT + 4);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        urma_target_seg_t *lent = lend(&e, ALL_ACCESS);
        *word = 0;
        tell(sock, &lent->seg, sizeof lent->seg);
        usleep((unsigned)(i % 8 * 20)); // before, beside and behind the import
        for (urma_status_t s; (s = urma_unregister_seg(lent)) != 0; refused++)
            CHECK_INT(s, URMA_FAIL);
        uint64_t seen = *(volatile uint64_t *)word;
        hear(sock, &stored, sizeof stored);
        CHECK_INT(seen, stored);
        CHECK_INT(*(volatile uint64_t *)word, seen); // and no byte moved later
    }
    uend_close(&e);
}

static void stores(int sock)
{
    struct uend e;

    uend_meet(&e, &rm, sock);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        uint64_t stored = 0;
        urma_seg_t seg;
        hear(sock, &seg, sizeof seg);
        urma_target_seg_t *t = map(&e, &seg, UEND_TOKEN, 0);
        if (t) {
            stored = i;
            *(volatile uint64_t *)(void *)(window(t) + 4) = i;
            CHECK_INT(urma_unimport_seg(t), 0);
        }
        tell(sock, &stored, sizeof stored);
    }
    uend_close(&e);
}

static void what_was_stored_before_the_end_of_a_mapping_is_there(void **state)
{
    (void)state;
    two_processes(stores, takes_away);
}

// ---- one's own, and one of many

static void a_segment_of_this_process_is_where_it_is(void **state)
{
    struct uend l, r;

    (void)state;
    upair_open(&l, &r, &rm);
    urma_target_seg_t *lent = lend(&r, ALL_ACCESS), *t = map(&l, &lent->seg, UEND_TOKEN, 0);
    CHECK(t && window(t) == r.buf + AT);
    CHECK_INT(urma_unregister_seg(lent), URMA_FAIL);
    CHECK_INT(urma_unimport_seg(t), 0);
    CHECK_INT(urma_unregister_seg(lent), 0);
    CHECK(map(&l, &r.seg->seg, UEND_TOKEN + 1, 0) == NULL && errno == EACCES);
    upair_close(&l, &r);
}

static void the_segment_of_several_that_is_named_is_mapped(void **state)
{
    urma_token_id_flag_t many = {.bs = {.multi_seg = 1}};
    urma_target_seg_t *seg[2], *t;
    urma_token_id_t *id;
    struct uend e;

    (void)state;
    uend_open(&e, &rm);
    id = urma_alloc_token_id_ex(e.ctx, many);
    CHECK(id != NULL);
    for (unsigned i = 0; i < 2; i++) {
        urma_seg_cfg_t cfg = {.va = (uintptr_t)e.buf + i * 8192, .len = 4096, .token_id = id};
        cfg.flag.bs.token_id_valid = 1;
        cfg.flag.bs.access = ALL_ACCESS;
        seg[i] = urma_register_seg(e.ctx, &cfg);
        CHECK(seg[i] != NULL);
    }
    t = map(&e, &seg[0]->seg, 0, 0);
    CHECK(t && window(t) == e.buf);
    CHECK_INT(urma_unregister_seg(seg[0]), URMA_FAIL);
    CHECK_INT(urma_unregister_seg(seg[1]), 0); // the other one is free
    CHECK_INT(urma_unimport_seg(t), 0);
    CHECK_INT(urma_unregister_seg(seg[0]), 0);
    CHECK_INT(urma_free_token_id(id), 0);
    uend_close(&e);
}

// ---- who dies holds nothing

static void maps_and_stops(int sock)
{
    struct uend e;
    urma_seg_t seg;
    bool mapped;

    uend_open(&e, &rm);
    hear(sock, &seg, sizeof seg);
    mapped = map(&e, &seg, UEND_TOKEN, 0) != NULL;
    tell(sock, &mapped, sizeof mapped);
    raise(SIGSTOP);
}

static void has_a_child_that_maps_and_kills_it(int sock)
{
    pid_t child = fork();
    int status;

    if (!child) {
        maps_and_stops(sock);
        _exit(1);
    }
    CHECK_INT(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    meet(sock); // its owner has tried
    kill(child, SIGKILL);
    CHECK_INT(waitpid(child, &status, 0), child);
    meet(sock);
}

static void owner_of_what_a_dead_one_mapped(int sock)
{
    urma_target_seg_t *lent;
    struct uend e;
    bool mapped;

    uend_open(&e, &rm);
    lent = lend(&e, ALL_ACCESS);
    tell(sock, &lent->seg, sizeof lent->seg);
    hear(sock, &mapped, sizeof mapped);
    CHECK(mapped);
    CHECK_INT(urma_unregister_seg(lent), URMA_FAIL); // it is stopped, and may go on
    meet(sock);
    meet(sock);
    CHECK_INT(urma_unregister_seg(lent), 0);
    uend_close(&e);
}

static void who_is_killed_holds_no_segment(void **state)
{
    (void)state;
    two_processes(owner_of_what_a_dead_one_mapped, has_a_child_that_maps_and_kills_it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_and_loads_of_who_maps_it_are_the_owners),
        cmocka_unit_test(memory_that_is_not_adopted_is_not_mapped),
        cmocka_unit_test(rights_token_and_place_decide_who_maps_it),
        cmocka_unit_test(what_was_stored_before_the_end_of_a_mapping_is_there),
        cmocka_unit_test(who_is_killed_holds_no_segment),
        cmocka_unit_test(a_segment_of_this_process_is_where_it_is),
        cmocka_unit_test(the_segment_of_several_that_is_named_is_mapped),
    };

    in_arena = true;
    return cmocka_run_group_tests_name("urma mapped segments", tests, NULL, NULL);
}
