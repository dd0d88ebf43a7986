// SPDX-License-Identifier: MIT
// The device's errors, status, events and states in the words of URMA.
#include "face/urma/urma_face.h"

urma_status_t ur_status(int error)
{
    switch (-error) {
    case 0:
        return URMA_SUCCESS;
    case ENOMEM:
        return URMA_ENOMEM;
    case EINVAL:
        return URMA_EINVAL;
    case EAGAIN:
        return URMA_EAGAIN;
    case EPERM:
        return URMA_ENOPERM;
    case EEXIST:
        return URMA_EEXIST;
    case ETIMEDOUT:
        return URMA_ETIMEOUT;
    default:
        return URMA_FAIL;
    }
}

// The device's "invalid request" is of a message that its receive was too short for, or of a word that does
// not lie on its boundary.
static urma_cr_status_t invalid_request(const struct dock_wc *failed)
{
    bool message = failed->op <= DOCK_OP_SEND_INV || failed->op == DOCK_OP_WRITE_IMM;

    return message ? URMA_CR_REM_RESP_LEN_ERR : URMA_CR_REM_UNSUPPORTED_REQ_ERR;
}

urma_cr_status_t ur_cr_status(const struct dock_wc *failed)
{
    switch ((enum dock_status)failed->status) {
    case DOCK_OK:
        return URMA_CR_SUCCESS;
    case DOCK_ST_UNSUPPORTED:
        return URMA_CR_UNSUPPORTED_OPCODE_ERR;
    case DOCK_ST_LOC_LEN:
        return URMA_CR_LOC_LEN_ERR;
    case DOCK_ST_LOC_QP_OP:
    case DOCK_ST_MW_BIND:
        return URMA_CR_LOC_OPERATION_ERR;
    case DOCK_ST_LOC_PROT:
        return URMA_CR_LOC_ACCESS_ERR;
    case DOCK_ST_REM_RESP_LEN:
        return URMA_CR_REM_RESP_LEN_ERR;
    case DOCK_ST_REM_INV_REQ:
        return invalid_request(failed);
    case DOCK_ST_REM_ACCESS:
        return URMA_CR_REM_ACCESS_ABORT_ERR;
    case DOCK_ST_REM_OP:
        return URMA_CR_REM_OPERATION_ERR;
    case DOCK_ST_RNR_EXC:
        return URMA_CR_RNR_RETRY_CNT_EXC_ERR;
    case DOCK_ST_RETRY_EXC:
        return URMA_CR_ACK_TIMEOUT_ERR;
    case DOCK_ST_FLUSH:
        return URMA_CR_WR_FLUSH_ERR;
    case DOCK_ST_FLUSH_DONE:
        return URMA_CR_WR_FLUSH_ERR_DONE;
    case DOCK_ST_SUSPEND_DONE:
        return URMA_CR_WR_SUSPEND_DONE;
    }
    return URMA_CR_LOC_OPERATION_ERR;
}

urma_jetty_state_t ur_state(enum dock_state state)
{
    switch (state) {
    case DOCK_RESET:
        return URMA_JETTY_STATE_RESET;
    case DOCK_INIT:
    case DOCK_RTR:
    case DOCK_RTS:
        return URMA_JETTY_STATE_READY;
    case DOCK_SUSPENDED:
    case DOCK_SQD:
        return URMA_JETTY_STATE_SUSPENDED;
    default:
        return URMA_JETTY_STATE_ERROR;
    }
}

static urma_async_event_type_t queue_event(enum ur_kind of)
{
    return of == UR_JFS ? URMA_EVENT_JFS_ERR : of == UR_JFR ? URMA_EVENT_JFR_ERR : URMA_EVENT_JETTY_ERR;
}

bool ur_event_type(enum dock_event_kind kind, enum ur_kind of, urma_async_event_type_t *out)
{
    switch (kind) {
    case DOCK_EVENT_CQ_ERR:
        *out = URMA_EVENT_JFC_ERR;
        return true;
    case DOCK_EVENT_QP_FATAL:
    case DOCK_EVENT_QP_REQ_ERR:
    case DOCK_EVENT_QP_ACCESS_ERR:
        *out = queue_event(of);
        return true;
    case DOCK_EVENT_SRQ_LIMIT:
        *out = URMA_EVENT_JFR_LIMIT;
        return true;
    case DOCK_EVENT_SRQ_ERR:
        *out = URMA_EVENT_JFR_ERR;
        return true;
    case DOCK_EVENT_DEVICE_FATAL:
        *out = URMA_EVENT_DEV_FATAL;
        return true;
    case DOCK_EVENT_PORT_ACTIVE:
        *out = URMA_EVENT_PORT_ACTIVE;
        return true;
    case DOCK_EVENT_PORT_ERR:
        *out = URMA_EVENT_PORT_DOWN;
        return true;
    case DOCK_EVENT_BUNDLE_EMPTY:
        *out = URMA_EVENT_JETTY_GRP_ERR;
        return true;
    case DOCK_EVENT_GID_CHANGE:
        *out = URMA_EVENT_EID_CHANGE;
        return true;
    default:
        return false;
    }
}
