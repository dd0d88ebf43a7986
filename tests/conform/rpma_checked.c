// SPDX-License-Identifier: MIT
// A program of librpma (remote persistent memory) with values that are known beforehand: rpma_checked ADDRESS
// PORT waits, with a third word it is the client. Write, atomic write, flush, read and a message with
// immediate data.
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 65536u
#define WRITTEN 1000u // bytes at the beginning of the server's memory
#define WORD_AT 2048u
#define READ_TO 4096u
#define MESSAGE_AT 8192u
#define MESSAGE "written"
#define MESSAGE_ROOM 64u
#define IMMEDIATE 42u

static const uint64_t word = 0x0102030405060708u;

// What the server tells with its answer: where its memory is.
struct telling {
    uint64_t length;
    char descriptor[64];
};

static int wrong;

static void must(int ret, const char *what)
{
    if (!ret)
        return;
    printf("%s: %s\n", what, rpma_err_2str(ret));
    exit(1);
}

static void expect(const char *what, uint64_t expected, uint64_t got)
{
    if (expected == got)
        return;
    wrong++;
    printf("%s: expected %llu, got %llu\n", what, (unsigned long long)expected, (unsigned long long)got);
}

static char pattern(unsigned i)
{
    return (char)(i * 7 + 1);
}

static unsigned different(const char *mem)
{
    unsigned n = 0;

    for (unsigned i = 0; i < WRITTEN; i++)
        n += mem[i] != pattern(i);
    return n;
}

static uint64_t word_at(const char *mem)
{
    uint64_t got;

    memcpy(&got, mem, sizeof got);
    return got;
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
    enum rpma_conn_event got = RPMA_CONN_UNDEFINED;

    must(rpma_conn_next_event(conn, &got), "rpma_conn_next_event");
    expect("event", expected, got);
}

static struct ibv_wc completed(struct rpma_conn *conn, const char *what)
{
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;

    must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    must(rpma_cq_wait(cq), "rpma_cq_wait");
    must(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
    expect(what, IBV_WC_SUCCESS, wc.status);
    return wc;
}

static struct rpma_peer *peer_of(const char *address, enum rpma_util_ibv_context_type kind)
{
    struct ibv_context *context = NULL;
    struct rpma_peer *peer = NULL;

    must(rpma_utils_get_ibv_context(address, kind, &context), "rpma_utils_get_ibv_context");
    must(rpma_peer_new(context, &peer), "rpma_peer_new");
    return peer;
}

static void server(const char *address, const char *port, char *mem)
{
    struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_mr_local *mr = NULL;
    struct rpma_ep *ep = NULL;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    struct telling t = {0};
    size_t length;

    must(rpma_mr_reg(peer, mem, BYTES,
                     RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_RECV |
                         RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
                     &mr),
         "rpma_mr_reg");
    must(rpma_mr_get_descriptor_size(mr, &length), "rpma_mr_get_descriptor_size");
    if (length > sizeof t.descriptor)
        exit(1);
    t.length = length;
    must(rpma_mr_get_descriptor(mr, t.descriptor), "rpma_mr_get_descriptor");
    must(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
    must(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
    must(rpma_conn_req_recv(req, mr, MESSAGE_AT, MESSAGE_ROOM, mem), "rpma_conn_req_recv");
    must(rpma_conn_req_connect(&req, &(struct rpma_conn_private_data){&t, sizeof t}, &conn),
         "rpma_conn_req_connect");
    expect_event(conn, RPMA_CONN_ESTABLISHED);

    struct ibv_wc wc = completed(conn, "the message's completion");
    expect("op_context of the receive", (uintptr_t)mem, wc.wr_id);
    expect("immediate data come", 1, (wc.wc_flags & IBV_WC_WITH_IMM) != 0);
    expect("the message is another", 0, (uint64_t)strcmp(mem + MESSAGE_AT, MESSAGE) != 0);
    expect("bytes that are wrong behind the message", 0, different(mem));
    expect("word that was written", word, word_at(mem + WORD_AT));

    must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
    expect_event(conn, RPMA_CONN_CLOSED);
    must(rpma_conn_delete(&conn), "rpma_conn_delete");
    must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
    must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
    must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char *address, const char *port, char *mem)
{
    struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    struct rpma_mr_local *mr = NULL;
    struct rpma_mr_remote *there = NULL;
    struct rpma_conn_private_data told = {0};
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    size_t bytes;

    must(rpma_mr_reg(peer, mem, BYTES, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND,
                     &mr),
         "rpma_mr_reg");
    must(rpma_conn_req_new(peer, address, port, NULL, &req), "rpma_conn_req_new");
    must(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    must(rpma_conn_get_private_data(conn, &told), "rpma_conn_get_private_data");
    struct telling *t = told.ptr;
    must(rpma_mr_remote_from_descriptor(t->descriptor, t->length, &there), "rpma_mr_remote_from_descriptor");
    must(rpma_mr_remote_get_size(there, &bytes), "rpma_mr_remote_get_size");
    expect("bytes of the server's memory", BYTES, bytes);

    for (unsigned i = 0; i < WRITTEN; i++)
        mem[i] = pattern(i);
    must(rpma_write(conn, there, 0, mr, 0, WRITTEN, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
    must(rpma_atomic_write(conn, there, WORD_AT, (const char *)&word, RPMA_F_COMPLETION_ON_ERROR, NULL),
         "rpma_atomic_write");
    must(rpma_flush(conn, there, 0, WORD_AT + sizeof word, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, mem),
         "rpma_flush");
    expect("op_context of the flush", (uintptr_t)mem, completed(conn, "the flush").wr_id);
    must(rpma_read(conn, mr, READ_TO, there, 0, WORD_AT + sizeof word, RPMA_F_COMPLETION_ALWAYS, mem + 1),
         "rpma_read");
    expect("op_context of the read", (uintptr_t)mem + 1, completed(conn, "the read").wr_id);
    expect("bytes that were read and are wrong", 0, different(mem + READ_TO));
    expect("word that was read", word, word_at(mem + READ_TO + WORD_AT));
    memcpy(mem + MESSAGE_AT, MESSAGE, sizeof MESSAGE);
    must(rpma_send_with_imm(conn, mr, MESSAGE_AT, MESSAGE_ROOM, RPMA_F_COMPLETION_ALWAYS, IMMEDIATE, NULL),
         "rpma_send_with_imm");
    completed(conn, "the message");

    expect_event(conn, RPMA_CONN_CLOSED);
    must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
    must(rpma_mr_remote_delete(&there), "rpma_mr_remote_delete");
    must(rpma_conn_delete(&conn), "rpma_conn_delete");
    must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
    must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char **argv)
{
    char *mem;

    if (argc < 3) {
        printf("usage: rpma_checked ADDRESS PORT [client]\n");
        return 2;
    }
    mem = calloc(1, BYTES);
    if (!mem)
        return 1;
    (argc == 3 ? server : client)(argv[1], argv[2], mem);
    free(mem);
    if (!wrong)
        printf("right\n");
    return wrong != 0;
}
