// SPDX-License-Identifier: MIT
// PMI-1 as launchers speak it: lines of key=value over a descriptor. Only what is needed to learn who we are
// and to agree on the name of the job's file.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena/rundir.h"
#include "face/shmem/shmem_face.h"

#define LINE 1024

static int pmi_fd = -1;
static bool file_is_ours;

static int say(const char *line)
{
    size_t n = strlen(line);

    while (n) {
        ssize_t done = write(pmi_fd, line, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -EPIPE;
        line += done;
        n -= (size_t)done;
    }
    return 0;
}

// One line, without its end.
static int hear(char *line)
{
    for (size_t n = 0; n < LINE - 1;) {
        ssize_t got = read(pmi_fd, line + n, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EPIPE;
        if (line[n] == '\n') {
            line[n] = '\0';
            return 0;
        }
        n++;
    }
    return -EPROTO;
}

// Ask, and see that the answer is the one that belongs to it and says that all is well.
static int talk(const char *question, const char *answer, char *line)
{
    char expected[64];
    int err = say(question);

    if (!err)
        err = hear(line);
    if (err)
        return err;
    snprintf(expected, sizeof expected, "cmd=%s", answer);
    if (strncmp(line, expected, strlen(expected)) != 0 || (strstr(line, "rc=") && !strstr(line, "rc=0")))
        err = -EPROTO;
    if (err)
        dock_error("the launcher answered '%s' over PMI where '%s' was expected", line, expected);
    return err;
}

static int value_of(const char *line, const char *key, char *out, size_t size)
{
    const char *at = strstr(line, key);

    if (!at)
        return -EPROTO;
    at += strlen(key);
    size_t n = strcspn(at, " ");
    if (n >= size)
        return -ENAMETOOLONG;
    memcpy(out, at, n);
    out[n] = '\0';
    return 0;
}

static int number_of(const char *name, int *out)
{
    const char *text = getenv(name);

    if (!text)
        return -EPROTO;
    *out = atoi(text);
    return 0;
}

// PE 0 chooses the file, in the runtime directory that all share, and the others ask for its name.
static int agree(const char *kvs, struct osh_pmi *p)
{
    char line[LINE], question[LINE];
    struct dock_rundir dir;
    int err = 0;

    if (p->rank == 0) {
        err = dock_rundir_open(NULL, &dir);
        if (err)
            return err;
        if (strlen(dir.path) > 100 || strpbrk(dir.path, " \n")) { // the protocol's words end at a blank
            dock_error("the runtime directory %s is too long for PMI, or has a blank", dir.path);
            dock_rundir_close(&dir);
            return -ENAMETOOLONG;
        }
        snprintf(p->file, sizeof p->file, "%.100s/job.%d", dir.path, (int)getpid());
        dock_rundir_close(&dir);
        file_is_ours = true;
        unlink(p->file); // left by one of our number who was killed
        snprintf(question, sizeof question, "cmd=put kvsname=%s key=dock-job value=%s\n", kvs, p->file);
        err = talk(question, "put_result", line);
    }
    if (!err)
        err = talk("cmd=barrier_in\n", "barrier_out", line);
    if (!err && p->rank) {
        snprintf(question, sizeof question, "cmd=get kvsname=%s key=dock-job\n", kvs);
        err = talk(question, "get_result", line);
        if (!err)
            err = value_of(line, "value=", p->file, sizeof p->file);
    }
    return err;
}

int osh_pmi_join(int fd, struct osh_pmi *out)
{
    struct osh_pmi p = {0};
    char line[LINE], kvs[256];
    int err = number_of("PMI_RANK", &p.rank);

    pmi_fd = fd;
    if (!err)
        err = number_of("PMI_SIZE", &p.size);
    if (!err && (p.size < 1 || p.size > DOCK_JOB_MAX || p.rank < 0 || p.rank >= p.size))
        err = -EINVAL;
    if (!err)
        err = talk("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", line);
    if (!err)
        err = talk("cmd=get_my_kvsname\n", "my_kvsname", line);
    if (!err)
        err = value_of(line, "kvsname=", kvs, sizeof kvs);
    if (!err)
        err = agree(kvs, &p);
    if (err) {
        dock_error("meeting the other PEs through PMI failed: %s", strerror(-err));
        return err;
    }
    if (file_is_ours)
        snprintf(osh.job_file, sizeof osh.job_file, "%s", p.file);
    *out = p;
    return 0;
}

void osh_pmi_finish(void)
{
    char line[LINE];

    talk("cmd=finalize\n", "finalize_ack", line);
}

// All have mapped it: its name is not needed any more, and nobody may be left to remove it later.
void osh_pmi_met(void)
{
    if (file_is_ours)
        unlink(osh.job_file);
}

void osh_pmi_abort(int status)
{
    char line[64];

    snprintf(line, sizeof line, "cmd=abort exitcode=%d\n", status);
    say(line);
}
