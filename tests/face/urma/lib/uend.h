// SPDX-License-Identifier: MIT
// What the tests of the URMA face share: one end with everything it needs (a jetty, or a JFS and a JFR),
// two of them in one process or in two, polling with a time limit.
#ifndef DOCK_TESTS_FACE_URMA_LIB_UEND_H
#define DOCK_TESTS_FACE_URMA_LIB_UEND_H

#include <ub/umdk/urma/urma_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "face/lib/two.h"

#define ALL_ACCESS (URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)

// Zeros mean the usual: RC, a jetty, 16 WRs, 4 SGEs, all inline bytes, 64 KiB with all rights, token 0x1234.
struct uend_options {
    urma_transport_mode_t mode;
    bool halves; // JFS and JFR instead of a jetty
    uint32_t depth, recv_depth, jfc_depth;
    uint8_t sge, rnr_retry, err_timeout;
    uint32_t inline_data;
    uint32_t access; // of the segment
    size_t bytes;
    urma_jfs_flag_t flag;
    urma_jfc_flag_t jfc_flag;
    urma_jfr_flag_t jfr_flag;
    urma_jetty_flag_t jetty_flag;
    bool events; // one JFCE behind both JFCs
    bool open;   // no token
};

struct uend {
    struct uend_options opt;
    urma_context_t *ctx;
    urma_jfce_t *jfce;
    urma_jfc_t *jfc, *rjfc; // of sends, of receives
    urma_jfr_t *jfr;
    urma_jfs_t *jfs;     // or
    urma_jetty_t *jetty; // one of both
    urma_target_seg_t *seg;
    char *buf;
    // What it knows of the other end.
    urma_target_jetty_t *target;
    urma_target_seg_t *there;
    uint64_t raddr;
};

// What one end must know of the other, as programs send it over a socket.
struct uend_address {
    urma_seg_t seg;
    urma_rjetty_t rjetty;
    urma_rjfr_t rjfr;
};

#define UEND_TOKEN 0x1234u

urma_device_t *the_device(void); // starts the library if that was not done
void uend_open(struct uend *e, const struct uend_options *opt);
void uend_close(struct uend *e);
struct uend_address uend_address(const struct uend *e);
void uend_import(struct uend *e, const struct uend_address *peer);
void uend_connect(struct uend *e, const struct uend_address *peer); // imports, and binds an RC jetty
void uend_part(struct uend *e);                                     // unbinds and unimports

// Set-up and tear-down of a group of tests in one process: the device stays open between them.
int uend_keep_device(void **state);
int uend_let_device_go(void **state);

// Two ends of this process, connected.
void upair_open(struct uend *l, struct uend *r, const struct uend_options *opt);
void upair_close(struct uend *l, struct uend *r);
// uend_open, exchange of addresses over `sock`, uend_connect.
void uend_meet(struct uend *e, const struct uend_options *opt, int sock);

// ---- requests. The SGEs live as long as the struct.

struct uwr {
    urma_jfs_wr_t wr;
    urma_sge_t local[16], remote[2];
};

// One local piece at `offset`, signaled, to or from the same offset of the other end.
void uend_wr(struct uend *e, struct uwr *w, urma_opcode_t op, uint64_t id, size_t offset, uint32_t len);
urma_status_t uend_post(struct uend *e, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad); // bad may be NULL
urma_status_t uend_recv(struct uend *e, uint64_t id, size_t offset, uint32_t len);

// ---- completions

// One completion within `ms`; false: none came.
bool ucr_poll(urma_jfc_t *jfc, urma_cr_t *cr, int ms);
// The next one has this user_ctx and status, within 5 s.
void ucr_expect(urma_jfc_t *jfc, uint64_t id, urma_cr_status_t status, urma_cr_t *cr);
void ucr_expect_empty(urma_jfc_t *jfc, int ms);

#endif
