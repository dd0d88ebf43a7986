// SPDX-License-Identifier: MIT
// The smallest URMA program in which two processes share memory: one WRITEs into the other's memory, then
// READs it back. The other does nothing at all while that happens: one-sided work is done by the device.
//
//     drydock run write_read [DEVICE]        or, with an adapter:        write_read [DEVICE]
//
// It needs nothing but <ub/umdk/urma/urma_api.h>. The two processes are parent and child, with a socket
// between them for what URMA leaves to the program: telling each other who and where they are.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ub/umdk/urma/urma_api.h>
#include <unistd.h>

enum { SIZE = 4096, TOKEN = 0xfeed };

static const char *who;

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "write_read: %s: %s failed\n", who, what);
    exit(1);
}

// What the other process must know: my jetty's name, and my memory's. Plain bytes, good for any wire.
struct card {
    urma_rjetty_t jetty;
    urma_seg_t memory;
};

struct world {
    urma_context_t *ctx;
    urma_jfc_t *jfc;     // completions come here
    urma_jfr_t *jfr;     // receives would be posted here; a jetty of a UB device needs one
    urma_jetty_t *jetty; // requests are posted here
    urma_target_seg_t *memory;
    urma_target_jetty_t *peer;
    urma_target_seg_t *peer_memory;
    char buffer[SIZE] __attribute__((aligned(SIZE)));
};

static struct world w;

// A context is this process at one of the device's addresses (an EID).
static void open_device(const char *wanted)
{
    urma_eid_info_t *eids;
    urma_device_t **list;
    uint32_t count;
    int devices;

    must(urma_init(NULL) == URMA_SUCCESS, "urma_init");
    list = urma_get_device_list(&devices);
    must(list && devices > 0, "urma_get_device_list");
    for (int i = 0; i < devices && !w.ctx; i++) {
        if (wanted && strcmp(wanted, list[i]->name) != 0)
            continue;
        eids = urma_get_eid_list(list[i], &count);
        must(eids && count > 0, "urma_get_eid_list");
        w.ctx = urma_create_context(list[i], eids[0].eid_index);
        urma_free_eid_list(eids);
    }
    urma_free_device_list(list);
    must(w.ctx != NULL, "urma_create_context");
}

static void make_queues(void)
{
    urma_jfc_cfg_t jfc = {.depth = 64};
    urma_jfr_cfg_t jfr = {.depth = 64, .trans_mode = URMA_TM_RC, .max_sge = 1};
    urma_jetty_cfg_t jetty = {
        .flag.bs.share_jfr = 1,
        .jfs_cfg = {.depth = 64,
                    .trans_mode = URMA_TM_RC, // one jetty talks to one other
                    .max_sge = 1,
                    .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                    .err_timeout = URMA_TYPICAL_ERR_TIMEOUT},
    };

    must((w.jfc = urma_create_jfc(w.ctx, &jfc)) != NULL, "urma_create_jfc");
    jfr.jfc = w.jfc;
    must((w.jfr = urma_create_jfr(w.ctx, &jfr)) != NULL, "urma_create_jfr");
    jetty.jfs_cfg.jfc = w.jfc;
    jetty.shared.jfr = w.jfr;
    must((w.jetty = urma_create_jetty(w.ctx, &jetty)) != NULL, "urma_create_jetty");
}

// Registering says what others may do with the memory, and which token they must show for it.
static void register_memory(void)
{
    urma_seg_cfg_t cfg = {
        .va = (uintptr_t)w.buffer,
        .len = SIZE,
        .token_value = {TOKEN},
        .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT, .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE},
    };

    must((w.memory = urma_register_seg(w.ctx, &cfg)) != NULL, "urma_register_seg");
}

static void meet_the_other(int sock)
{
    struct card mine = {.memory = w.memory->seg}, theirs;
    urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE};
    urma_token_t token = {TOKEN};
    urma_rjetty_t *me;
    uint32_t length;

    must(urma_get_rjetty(w.jetty, &me, &length) == URMA_SUCCESS, "urma_get_rjetty");
    mine.jetty = *me;
    urma_put_rjetty(me);
    must(write(sock, &mine, sizeof mine) == sizeof mine, "write to the socket");
    must(recv(sock, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs, "read from the socket");
    must((w.peer = urma_import_jetty(w.ctx, &theirs.jetty, &token)) != NULL, "urma_import_jetty");
    must((w.peer_memory = urma_import_seg(w.ctx, &theirs.memory, &token, 0, flag)) != NULL,
         "urma_import_seg");
    must(urma_bind_jetty(w.jetty, w.peer) == URMA_SUCCESS, "urma_bind_jetty");
}

// Both are here before either goes on.
static void rendezvous(int sock)
{
    char c = 0;

    must(write(sock, &c, 1) == 1 && read(sock, &c, 1) == 1, "rendezvous");
}

// Post one request and wait for its completion. A post says "accepted"; only the completion says "done".
static void run(urma_opcode_t opcode, uint64_t mine, uint64_t theirs, uint32_t len, uint64_t user_ctx)
{
    urma_sge_t here = {.addr = mine, .len = len, .tseg = w.memory};
    urma_sge_t there = {.addr = theirs, .len = len, .tseg = w.peer_memory};
    urma_jfs_wr_t *bad, wr = {.opcode = opcode,
                              .flag.bs.complete_enable = 1, // say so when it is done
                              .tjetty = w.peer,
                              .user_ctx = user_ctx}; // comes back in the completion
    urma_cr_t cr;
    int n;

    wr.rw.src = (urma_sg_t){opcode == URMA_OPC_READ ? &there : &here, 1};
    wr.rw.dst = (urma_sg_t){opcode == URMA_OPC_READ ? &here : &there, 1};
    must(urma_post_jetty_send_wr(w.jetty, &wr, &bad) == URMA_SUCCESS, "urma_post_jetty_send_wr");
    do
        n = urma_poll_jfc(w.jfc, 1, &cr);
    while (n == 0);
    must(n == 1 && cr.status == URMA_CR_SUCCESS && cr.user_ctx == user_ctx, "the request");
}

static void parent(int sock)
{
    uint64_t theirs = w.peer_memory->seg.ubva.va;

    rendezvous(sock);
    strcpy(w.buffer, "written by the parent");
    run(URMA_OPC_WRITE, (uintptr_t)w.buffer, theirs, 64, 1);
    printf("parent: WRITE done: \"%s\"\n", w.buffer);
    run(URMA_OPC_READ, (uintptr_t)w.buffer + 1024, theirs, 64, 2);
    printf("parent: READ done:  \"%s\"\n", w.buffer + 1024);
    fflush(stdout);
    rendezvous(sock);
}

static void child(int sock)
{
    rendezvous(sock);
    rendezvous(sock); // all the work is done in between, and not by us
    printf("child:  my memory:  \"%s\"\n", w.buffer);
    fflush(stdout);
}

// In the reverse order of making: nothing goes while something uses it.
static void close_all(void)
{
    must(urma_unbind_jetty(w.jetty) == URMA_SUCCESS, "urma_unbind_jetty");
    must(urma_unimport_jetty(w.peer) == URMA_SUCCESS, "urma_unimport_jetty");
    must(urma_unimport_seg(w.peer_memory) == URMA_SUCCESS, "urma_unimport_seg");
    must(urma_delete_jetty(w.jetty) == URMA_SUCCESS, "urma_delete_jetty");
    must(urma_delete_jfr(w.jfr) == URMA_SUCCESS, "urma_delete_jfr");
    must(urma_delete_jfc(w.jfc) == URMA_SUCCESS, "urma_delete_jfc");
    must(urma_unregister_seg(w.memory) == URMA_SUCCESS, "urma_unregister_seg");
    must(urma_delete_context(w.ctx) == URMA_SUCCESS, "urma_delete_context");
    must(urma_uninit() == URMA_SUCCESS, "urma_uninit");
}

int main(int argc, char **argv)
{
    int sockets[2], status = 0;
    pid_t pid;

    who = "parent";
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
    pid = fork(); // before urma_init: a device belongs to one process
    must(pid >= 0, "fork");
    if (pid == 0)
        who = "child";
    open_device(argc > 1 ? argv[1] : NULL);
    make_queues();
    register_memory();
    meet_the_other(sockets[pid == 0]);
    if (pid)
        parent(sockets[0]);
    else
        child(sockets[1]);
    close_all();
    if (pid)
        must(waitpid(pid, &status, 0) == pid && status == 0, "the child");
    return 0;
}
