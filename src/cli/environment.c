// SPDX-License-Identifier: MIT
#include "cli/environment.h"

static const struct dock_variable variables[] = {
    {"DRYDOCK_DIR", "runtime directory; devices find each other only in the same one"},
    {"DRYDOCK_LOG", "error, warn, info or debug"},
    {"DRYDOCK_NAME", "the device's name"},
    {"DRYDOCK_PROFILE", "whose adapter's choices: strict, mlx5, rxe or udma; then switches"},
    {"DRYDOCK_EVENTS", "completion events: exact, or noisy (some that nothing stands behind)"},
    {"DRYDOCK_ADOPT", "registered memory moves into the arena: inner, on or off"},
    {"DRYDOCK_HUGE", "memory there is given huge pages: on or off"},
    {"DRYDOCK_STOP", "threads stand still while memory moves: by auto, ptrace or signal"},
    {"DRYDOCK_SEED", "seed of every random decision"},
    {"DRYDOCK_STOPPED_MS", "patience with a stopped process that holds a lock, in milliseconds"},
    {"DRYDOCK_START_INDEX", "first index of every ring (a test hook)"},
    {"DRYDOCK_MAX_QP", "limit: queue pairs"},
    {"DRYDOCK_MAX_CQ", "limit: completion queues"},
    {"DRYDOCK_MAX_SRQ", "limit: shared receive queues"},
    {"DRYDOCK_MAX_MR", "limit: memory regions"},
    {"DRYDOCK_MAX_MW", "limit: memory windows"},
    {"DRYDOCK_MAX_PD", "limit: protection domains"},
    {"DRYDOCK_MAX_AH", "limit: address handles"},
    {"DRYDOCK_MAX_CQE", "limit: entries of a completion queue"},
    {"DRYDOCK_MAX_QP_WR", "limit: requests of a send or receive queue"},
    {"DRYDOCK_MAX_SRQ_WR", "limit: requests of a shared receive queue"},
    {"DRYDOCK_CM_TIMEOUT_MS", "patience of rdma_cm with a silent peer, in milliseconds"},
    {"DRYDOCK_SHMEM", "how OpenSHMEM reaches a mapped heap: stores or queue"},
    {"DRYDOCK_JOB_RANK", "this PE of an OpenSHMEM job, set by oshrun"},
    {"DRYDOCK_JOB_SIZE", "PEs of the job, set by oshrun"},
    {"DRYDOCK_JOB_FILE", "what the PEs of the job share, set by oshrun"},
    {"DRYDOCK_SHIM", "root of the private sysfs tree, set by drydock run"},
};

const struct dock_variable *dock_environment(size_t *count)
{
    *count = sizeof(variables) / sizeof(variables[0]);
    return variables;
}
