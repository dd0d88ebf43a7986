// SPDX-License-Identifier: MIT
// Calls past the common interface, by number. The numbers are UDMA's (ub/umdk/urma/udma/udma_u_ctl.h). Those
// that make queues in the caller's memory, ring a doorbell on somebody's behalf or read registers of a chip
// would have to pretend here: they are refused, each in words.
#include <ub/umdk/urma/udma/udma_u_ctl.h>

#include "face/urma/urma_face.h"

static const char *const why_not[UDMA_U_USER_CTL_MAX] = {
    [UDMA_U_USER_CTL_CREATE_JFR_EX] = "rings lie in the device's memory, not in the caller's",
    [UDMA_U_USER_CTL_DELETE_JFR_EX] = "no JFR was made by this call",
    [UDMA_U_USER_CTL_CREATE_JFS_EX] = "rings lie in the device's memory, not in the caller's",
    [UDMA_U_USER_CTL_DELETE_JFS_EX] = "no JFS was made by this call",
    [UDMA_U_USER_CTL_CREATE_JFC_EX] = "rings lie in the device's memory, not in the caller's",
    [UDMA_U_USER_CTL_DELETE_JFC_EX] = "no JFC was made by this call",
    [UDMA_U_USER_CTL_CREATE_JETTY_EX] = "rings lie in the device's memory, not in the caller's",
    [UDMA_U_USER_CTL_DELETE_JETTY_EX] = "no jetty was made by this call",
    [UDMA_U_USER_CTL_UPDATE_CI] = "urma_poll_jfc moves the consumer index",
    [UDMA_U_USER_CTL_QUERY_UE_INFO] = "there is no chip whose doorbell pages could be mapped",
    [UDMA_U_USER_CTL_QUERY_TP_SPORT] = "memory has no UDP ports",
    [UDMA_U_USER_CTL_QUERY_CQE_AUX_INFO] = "there are no registers of a chip to be read",
    [UDMA_U_USER_CTL_QUERY_AE_AUX_INFO] = "there are no registers of a chip to be read",
    [UDMA_U_USER_CTL_CREATE_LOCK_BUFFER_JETTY_EX] = "there is no cache to be locked",
    [UDMA_U_USER_CTL_DELETE_LOCK_BUFFER_JETTY_EX] = "no jetty was made by this call",
    [UDMA_U_USER_CTL_CREATE_CCU_JFC_EX] = "there is no collective unit",
    [UDMA_U_USER_CTL_DELETE_CCU_JFC_EX] = "no JFC was made by this call",
};

urma_status_t urma_user_ctl(urma_context_t *ctx, urma_user_ctl_in_t *in, urma_user_ctl_out_t *out)
{
    if (!ctx || !in || !out)
        return dock_refuse(URMA_EINVAL, "urma_user_ctl: no context, no input, or no output");
    if (in->opcode >= UDMA_U_USER_CTL_MAX)
        return dock_refuse(URMA_FAIL, "urma_user_ctl: there is no opcode %u", in->opcode);
    if (in->opcode == UDMA_U_USER_CTL_POST_WR)
        return ur_ctl_post_wr(in, out);
    return dock_refuse(URMA_ENOPERM, "urma_user_ctl: opcode %u: %s", in->opcode, why_not[in->opcode]);
}
