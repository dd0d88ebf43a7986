// SPDX-License-Identifier: MIT
// What the processes of one job and their launcher share: a small file in the job's directory with a seat for
// each process. Who starts a job knows nothing of what the processes put on their cards.
#ifndef DOCK_BASE_JOB_H
#define DOCK_BASE_JOB_H

#include "base/order.h"

#define DOCK_JOB_MAX 1024
#define DOCK_JOB_CARD 192

// Set by a launcher for each process it starts.
#define DOCK_JOB_RANK "DRYDOCK_JOB_RANK"
#define DOCK_JOB_SIZE "DRYDOCK_JOB_SIZE"
#define DOCK_JOB_FILE "DRYDOCK_JOB_FILE"

enum dock_seat_state {
    DOCK_SEAT_EMPTY,
    DOCK_SEAT_READY,    // the card may be read (release by its owner, acquire by the others)
    DOCK_SEAT_FINISHED, // said good-bye: may end whenever it likes
    DOCK_SEAT_LEAVING,  // ends the whole job on purpose; `status` says how
    DOCK_SEAT_BEREFT,   // ends because another process did: not the cause
    DOCK_SEAT_LOST,     // set by the launcher: the process is gone
};

struct dock_seat {
    dock_a32 state;
    dock_a32 status;
    uint8_t card[DOCK_JOB_CARD];
};

struct dock_job {
    dock_a32 arrived; // of the start barrier, a count
    dock_a32 ending;  // the launcher ends the job
    uint8_t rest[56];
    struct dock_seat seat[];
};

// Map the file, made if nobody has made it. -errno, -EINVAL: size is not 1 .. DOCK_JOB_MAX.
int dock_job_open(const char *path, unsigned size, struct dock_job **out);
void dock_job_close(struct dock_job *job, unsigned size);

#endif
