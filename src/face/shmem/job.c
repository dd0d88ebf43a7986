// SPDX-License-Identifier: MIT
// Who we are among how many, and how the cards go round: a launcher of ours says where the job's file is, one
// that speaks PMI-1 is asked, and alone we are PE 0 of 1.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "face/shmem/api.h"
#include "face/shmem/shmem_face.h"

static bool by_pmi;

static int number_from(const char *name, int least, int most, int *out)
{
    const char *text = getenv(name);
    char *end;
    long v = text ? strtol(text, &end, 10) : -1;

    if (!text || *end || v < least || v > most) {
        dock_error("%s=%s: a number from %d to %d is needed", name, text ? text : "", least, most);
        return -EINVAL;
    }
    *out = (int)v;
    return 0;
}

static int ours(const char *file)
{
    int err = number_from(DOCK_JOB_SIZE, 1, DOCK_JOB_MAX, &osh.n);

    if (!err)
        err = number_from(DOCK_JOB_RANK, 0, osh.n - 1, &osh.me);
    if (!err)
        snprintf(osh.job_file, sizeof osh.job_file, "%s", file);
    return err;
}

static int from_pmi(const char *fd)
{
    struct osh_pmi pmi;
    int err = osh_pmi_join(atoi(fd), &pmi);

    if (err)
        return err;
    by_pmi = true;
    osh.me = pmi.rank;
    osh.n = pmi.size;
    snprintf(osh.job_file, sizeof osh.job_file, "%s", pmi.file);
    return 0;
}

static int alone(void)
{
    osh.n = 1;
    osh.me = 0;
    osh.job = calloc(1, sizeof *osh.job + sizeof *osh.job->seat);
    return osh.job ? 0 : dock_no_memory("a job of one");
}

int osh_job_join(void)
{
    const char *file = getenv(DOCK_JOB_FILE), *pmi = getenv("PMI_FD");
    int err = file ? ours(file) : pmi ? from_pmi(pmi) : alone();

    if (!err && osh.job_file[0])
        err = dock_job_open(osh.job_file, (unsigned)osh.n, &osh.job);
    return err;
}

void osh_job_publish(const struct osh_card *card)
{
    struct dock_seat *seat = &osh.job->seat[osh.me];

    memcpy(seat->card, card, sizeof *card);
    dock_publish32(&seat->state, DOCK_SEAT_READY); // pairs with osh_job_meet
}

void osh_job_meet(void)
{
    static const struct timespec nap = {.tv_nsec = 100000};

    for (int pe = 0; pe < osh.n; pe++) {
        struct dock_seat *seat = &osh.job->seat[pe];
        uint32_t state;
        while ((state = dock_acquire32(&seat->state)) != DOCK_SEAT_READY) { // pairs with osh_job_publish
            if (state != DOCK_SEAT_EMPTY)
                osh_fatal("PE %d ended before all had called shmem_init", pe);
            osh_job_check();
            nanosleep(&nap, NULL);
        }
        memcpy(&osh.pe[pe].card, seat->card, sizeof osh.pe[pe].card);
    }
    if (by_pmi)
        osh_pmi_met();
}

void osh_job_finished(void)
{
    dock_publish32(&osh.job->seat[osh.me].state, DOCK_SEAT_FINISHED); // the launcher looks after our end
    if (by_pmi)
        osh_pmi_finish();
}

void osh_job_leave(void)
{
    if (osh.job_file[0])
        dock_job_close(osh.job, (unsigned)osh.n);
    else
        free(osh.job);
    osh.job = NULL;
}

void osh_job_bereft(void)
{
    dock_publish32(&osh.job->seat[osh.me].state, DOCK_SEAT_BEREFT); // the launcher looks after our end
}

static void __attribute__((noreturn)) end_with(int status)
{
    osh.ended = true;
    if (by_pmi)
        osh_pmi_abort(status);
    fflush(NULL);
    _exit(status);
}

void shmem_global_exit(int status)
{
    if (osh.job) {
        dock_set32(&osh.job->seat[osh.me].status, (uint32_t)status);
        dock_publish32(&osh.job->seat[osh.me].state,
                       DOCK_SEAT_LEAVING); // the launcher reads `status` behind it
    }
    end_with(status);
}
API(shmem_global_exit);

void osh_job_check(void)
{
    if (osh.n == 0 || osh.ended || !dock_acquire32(&osh.job->ending)) // pairs with the launcher's publish
        return;
    for (int pe = 0; pe < osh.n; pe++)
        if (dock_peek32(&osh.job->seat[pe].state) == DOCK_SEAT_LOST)
            osh_fatal("PE %d is gone, and this PE waits for what it does not do any more", pe);
    end_with(EXIT_FAILURE);
}

void osh_fatal(const char *fmt, ...)
{
    char line[240];
    va_list args;

    va_start(args, fmt);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started in the line above
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (osh.n)
        dock_error("PE %d of %d: %s", osh.me, osh.n, line);
    else
        dock_error("%s", line);
    end_with(EXIT_FAILURE);
}
