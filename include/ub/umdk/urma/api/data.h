// SPDX-License-Identifier: MIT
// The data path: post and poll.
#ifndef DRYDOCK_URMA_API_DATA_H
#define DRYDOCK_URMA_API_DATA_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// As urma_post_jetty_send_wr, on a JFS. Guide 2.4.1.1.
urma_status_t urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr);

// Posts receive buffers, in order, and does not wait; *bad_wr as above. URMA_EINVAL (NULL, more than max_sge
// pieces), URMA_ENOMEM (full). The buffers are the device's until their records are polled. Any thread unless
// the JFR is lock_free. Guide 2.4.1.2.
urma_status_t urma_post_jfr_wr(urma_jfr_t *jfr, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr);

// Posts the list that begins at wr, in order, and does not wait. The first request that cannot be posted ends
// it: its code is returned and *bad_wr points to it; those before it are posted. On success *bad_wr is left
// alone. The list and its pieces are the caller's again at once; memory that is sent, written from or read
// into only when the request has completed (inline: at once). URMA_EINVAL (NULL, an unknown opcode, too many
// pieces, more inline bytes than max_inline_data, no tjetty where one is needed, a flag that does not go with
// the mode), URMA_ENOMEM (the queue is full). A bad key or address is not seen here but in the record. Any
// thread unless the queue is lock_free. Guide 2.4.1.3.
urma_status_t urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr);

// As urma_post_jfr_wr, on the JFR of the jetty. Guide 2.4.1.4.
urma_status_t urma_post_jetty_recv_wr(urma_jetty_t *jetty, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr);

// One WRITE of len bytes from src in src_tseg to dst in dst_tseg. URMA_EINVAL for a NULL jfs, target or
// dst_tseg; else as urma_post_jfs_wr. Guide 2.4.3.1.
urma_status_t urma_write(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *dst_tseg,
                         urma_target_seg_t *src_tseg, uint64_t dst, uint64_t src, uint32_t len,
                         urma_jfs_wr_flag_t flag, uint64_t user_ctx);

// One READ of len bytes from src in src_tseg (imported) to dst in dst_tseg (own). URMA_EINVAL for NULL; else
// as urma_post_jfs_wr. Guide 2.4.3.2.
urma_status_t urma_read(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *dst_tseg,
                        urma_target_seg_t *src_tseg, uint64_t dst, uint64_t src, uint32_t len,
                        urma_jfs_wr_flag_t flag, uint64_t user_ctx);

// One SEND of len bytes at src. src_tseg may be NULL with the inline flag only. URMA_EINVAL for NULL; else as
// urma_post_jfs_wr. Guide 2.4.4.1.
urma_status_t urma_send(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *src_tseg,
                        uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx);

// One receive buffer of len bytes at buf. URMA_EINVAL for NULL, URMA_FAIL for address 0; else as
// urma_post_jfr_wr. Guide 2.4.4.2.
urma_status_t urma_recv(urma_jfr_t *jfr, urma_target_seg_t *recv_tseg, uint64_t buf, uint32_t len,
                        uint64_t user_ctx);

// Takes at most cr_cnt records, oldest first, and does not wait. Returns their number, 0 when there is none,
// -1 for NULL or a negative count. A record of a request releases that one and every earlier one of its
// queue. opcode, imm_data and remote_id are valid for receives only; after an error only status, user_ctx,
// local_id and flag are. Any thread unless the JFC is lock_free. Guide 2.4.2.1.
int urma_poll_jfc(urma_jfc_t *jfc, int cr_cnt, urma_cr_t *cr);

#ifdef __cplusplus
}
#endif

#endif
