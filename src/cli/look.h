// SPDX-License-Identifier: MIT
// A snapshot of the live devices of a runtime directory, as `drydock show` prints it. A device's records are
// read with pread(2) from its arena: nothing is mapped and nothing can be written, whatever the other side
// does meanwhile.
#ifndef DOCK_CLI_LOOK_H
#define DOCK_CLI_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/port.h"
#include "arena/rundir.h"
#include "arena/who.h"
#include "base/probe.h"

struct look_queue {
    uint32_t id;
    unsigned kind;    // enum dock_queue_kind
    unsigned service; // enum dock_service
    unsigned state;   // enum dock_state
    uint32_t peer_id;
    dock_who peer_who;
    uint32_t depth; // of the send queue, in WRs
    uint64_t posted, rings, executed, bytes_out, cqes, rnr, by_poster, by_poller, by_engine;
    uint64_t messages_in, bytes_in;
    uint64_t visits, pieces, under_way; // as the record has them
    uint64_t cq[2];                     // where the records of its completion queues lie
    bool damaged;                       // its checksum does not fit
};

enum look_answer {
    LOOK_READ,   // everything below is filled
    LOOK_SILENT, // it did not hand out its arena in time: stopped, or very busy
    LOOK_REFUSED // it handed out something that is not a device of this version
};

struct look_device {
    dock_who who;
    int pid;
    enum look_answer answer;
    char program[sizeof(((struct dock_port *)0)->program) + 1];
    uint64_t up_ns;
    bool fatal;
    uint32_t ncqs;
    uint64_t arena_bytes, fallback_bytes, fallback_calls, dropped;
    uint64_t adopted_bytes, adopted_huge, adopted_ever, stops, stopped_ns, forked_bytes;
    uint64_t not_adopted[DOCK_WHYS];    // by enum dock_adopt_why
    uint64_t stores[DOCK_STORE_KINDS];  // of OpenSHMEM, by enum dock_store_kind
    uint64_t moment[DOCK_MOMENT_COUNT]; // by enum dock_moment; see look_counted
    size_t nqueues;
    struct look_queue *queue;
};

// Moments that are counted: the cold ones by the device since it was opened, the hot ones by the queues that
// there are, send queues and those that complete them. Post, fetch, execute and free count WRs, poll
// completions, place pieces (one for each WR that moves something; of a long one, and of a datagram to a
// group, more). The others lie inside one of these and have no counter of their own: enter, claim, taken,
// cqe-lock, cqe-write.
bool look_counted(enum dock_moment at);

struct look {
    size_t ndevices;
    struct look_device *device;
};

// Looks at every device of the directory that is not known to be dead; each gets half a second to answer. 0
// or -errno, with the reason logged. look_free() undoes it.
int look_all(const struct dock_rundir *dir, struct look *look);
void look_free(struct look *look);

// Names of enum values, "?" for a value that no name belongs to (the records are another process's).
const char *look_service_name(unsigned service);
const char *look_state_name(unsigned state);
const char *look_kind_name(unsigned kind);

#endif
