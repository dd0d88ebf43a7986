// SPDX-License-Identifier: MIT
// Registered memory and its tokens.
#ifndef DRYDOCK_URMA_API_SEGMENT_H
#define DRYDOCK_URMA_API_SEGMENT_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A token id under which one segment can be registered. NULL with EINVAL, ENOMEM. Ends with
// urma_free_token_id. Guide 2.2.3.1.
urma_token_id_t *urma_alloc_token_id(urma_context_t *ctx);

// As urma_alloc_token_id; flag.multi_seg asks for an id of several segments (the device's feature
// muti_seg_per_token_id). A request by that id reaches the one that its range, rights and token value fit.
// Guide 2.2.3.2.
urma_token_id_t *urma_alloc_token_id_ex(urma_context_t *ctx, urma_token_id_flag_t flag);

// URMA_EINVAL for NULL or while a segment is registered under it. Guide 2.2.3.3.
urma_status_t urma_free_token_id(urma_token_id_t *token_id);

// Registers seg_cfg->len bytes at seg_cfg->va, so that the device may touch them. access:
// URMA_ACCESS_LOCAL_ONLY alone, or READ, READ|WRITE, READ|WRITE|ATOMIC for peers; 0 is for own requests.
// token_policy URMA_TOKEN_NONE or URMA_TOKEN_PLAIN_TEXT with token_value, which peers must show. With
// token_id_valid the caller's token_id is used, else the library makes one and frees it at the end. What
// peers need is the 48 bytes of seg in the handle. NULL with EINVAL (NULL, va 0, access, policy, token_id and
// its flag disagree), ENOMEM. Ends with urma_unregister_seg; the memory must stay until then. Guide 2.3.2.1.
urma_target_seg_t *urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *seg_cfg);

// When it returns, no byte of the memory moves any more; requests that still name it fail. URMA_EINVAL for
// NULL; URMA_FAIL while an import has it mapped, one of this process too: it stays registered. (When that
// import came just beside this call, requests that were under way may have failed.) Guide 2.3.2.2.
urma_status_t urma_unregister_seg(urma_target_seg_t *target_seg);

// A handle for a peer's segment, made from its 48 bytes. token_value may be NULL when the policy is
// URMA_TOKEN_NONE; a wrong one shows as URMA_CR_REM_ACCESS_ABORT_ERR. The peer is not asked. NULL with
// EINVAL, ENOMEM. Ends with urma_unimport_seg. Guide 2.3.2.3. With flag.mapping the segment is mapped, for
// loads, and for stores where segment and flag.access have WRITE; mva is where it lies, `addr` where it is to
// lie (0: anywhere; its offset in a page is the segment's). Whole pages are mapped. In a request an address
// of the mapping stands for the remote one; one that is in both ranges, where they overlap, is the remote
// one. NULL with EACCES: token, range or rights do not allow it; EHOSTUNREACH: its process is gone;
// EOPNOTSUPP: its memory could not be moved to where others can map it (DRYDOCK_ADOPT); EEXIST: something is
// at `addr`; EINVAL: no bytes, or `addr` lies otherwise in its page.
urma_target_seg_t *urma_import_seg(urma_context_t *ctx, urma_seg_t *seg, urma_token_t *token_value,
                                   uint64_t addr, urma_import_seg_flag_t flag);

// URMA_EINVAL for NULL. Requests that name it must have completed. Guide 2.3.2.4.
urma_status_t urma_unimport_seg(urma_target_seg_t *tseg);

// A copy of the segment's descriptor for a peer, *size bytes. To be given back with urma_put_seg_ctx.
// URMA_EINVAL for NULL, URMA_ENOMEM. Guide 2.3.2.5.
urma_status_t urma_get_seg_ctx(urma_target_seg_t *tseg, urma_seg_t **seg, uint32_t *size);

// Frees a descriptor; it is plain free(). NULL does nothing. Guide 2.3.2.6.
void urma_put_seg_ctx(urma_seg_t *seg);

#ifdef __cplusplus
}
#endif

#endif
