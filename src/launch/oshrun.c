// SPDX-License-Identifier: MIT
// oshrun -np N PROGRAM [ARGUMENT...]: start N processes of a job in a runtime directory of their own, and see
// it through: the exit status of the first that failed is the job's, a PE that goes before it has finished
// takes the job with it, and nothing stays behind, no process, no file.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/job.h"
#include "launch/keeper.h"

#define GRACE_NS 1000000000ull // the others may say what they miss before they are asked to end
#define TERM_NS 2000000000ull  // and so long they may take to end
#define USAGE 2

static struct {
    unsigned size;
    char dir[64], file[80];
    struct dock_job *job;
    struct dock_keeper keeper;
    pid_t pid[DOCK_JOB_MAX]; // 0: ended
    unsigned running;
    int status;         // the job's
    uint64_t ending_ns; // since when it is being ended, 0: it runs
    bool asked;         // SIGTERM was sent
    bool cause_known;   // who made the job end was seen to end
} run;

static volatile sig_atomic_t caught;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
    char line[300];
    va_list args;
    int n = snprintf(line, sizeof line, "oshrun: ");

    va_start(args, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
    va_end(args);
    n = n > (int)sizeof line - 2 ? (int)sizeof line - 2 : n;
    line[n++] = '\n';
    ssize_t ignored =
        write(STDERR_FILENO, line, (size_t)n); // one write: lines of several processes do not mix
    (void)ignored;
}

static void on_signal(int sig)
{
    caught = sig;
}

static bool nohup; // started to outlive its terminal: the PEs are too

static int make_directory(void)
{
    // Below /tmp whatever TMPDIR says: socket paths have 108 bytes.
    snprintf(run.dir, sizeof run.dir, "/tmp/drydock-job-XXXXXX");
    if (!mkdtemp(run.dir)) {
        say("no directory for the job: %s", strerror(errno));
        return -1;
    }
    snprintf(run.file, sizeof run.file, "%s/job", run.dir);
    return 0;
}

// In the child.
static void become(unsigned rank, char **argv, pid_t parent)
{
    char number[16];
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL); // oshrun may be killed
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0); // what a PE starts is found through its group
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (!nohup)
        signal(SIGHUP, SIG_DFL);
    signal(SIGTTOU, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (rank || isatty(STDIN_FILENO)) { // a background group may not read the terminal
        int null = open("/dev/null", O_RDONLY);
        dup2(null, STDIN_FILENO);
        close(null);
    }
    snprintf(number, sizeof number, "%u", rank);
    setenv(DOCK_JOB_RANK, number, 1);
    snprintf(number, sizeof number, "%u", run.size);
    setenv(DOCK_JOB_SIZE, number, 1);
    setenv(DOCK_JOB_FILE, run.file, 1);
    setenv("DRYDOCK_DIR", run.dir, 1);
    execvp(argv[0], argv);
    say("%s: %s", argv[0], strerror(errno));
    _exit(127);
}

static void signal_all(int sig)
{
    for (unsigned i = 0; i < run.size; i++)
        if (run.pid[i])
            kill(-run.pid[i], sig);
}

static int start_all(char **argv)
{
    pid_t me = getpid();

    for (unsigned i = 0; i < run.size; i++) {
        pid_t pid = fork();
        if (pid == 0)
            become(i, argv, me);
        if (pid < 0) {
            say("PE %u cannot be started: %s", i, strerror(errno));
            return -errno;
        }
        setpgid(pid, pid); // whoever is first
        dock_keeper_tell(&run.keeper, pid);
        run.pid[i] = pid;
        run.running++;
    }
    return 0;
}

static void end_job(int status)
{
    run.status = status;
    if (run.ending_ns)
        return;
    run.ending_ns = dock_now_ns();
    dock_publish32(&run.job->ending, 1); // pairs with osh_job_check of the PEs
}

// What the end of a PE means for the job.
static void ended(unsigned rank, int how)
{
    struct dock_seat *seat = &run.job->seat[rank];
    uint32_t state = dock_acquire32(&seat->state); // pairs with the PE's publish
    int status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);

    run.pid[rank] = 0;
    run.running--;
    if (run.ending_ns && (run.cause_known || run.asked)) // it was told to, or says for itself why
        return;
    if (state == DOCK_SEAT_BEREFT) { // it may be reaped before the one it misses
        end_job(EXIT_FAILURE);
        return;
    }
    run.cause_known = state != DOCK_SEAT_FINISHED && !(state == DOCK_SEAT_EMPTY && how == 0);
    if (state == DOCK_SEAT_LEAVING) {
        end_job((int)dock_peek32(&seat->status) & 0xff);
        return;
    }
    if (state == DOCK_SEAT_FINISHED || (state == DOCK_SEAT_EMPTY && how == 0)) {
        dock_publish32(&seat->state, DOCK_SEAT_FINISHED); // who waits for its card learns that none comes
        if (status && !run.status)
            run.status = status;
        return;
    }
    dock_publish32(&seat->state, DOCK_SEAT_LOST); // before `ending`, which the PEs look at first
    if (WIFSIGNALED(how))
        say("PE %u of %u was killed by signal %d (%s): the job ends", rank, run.size, WTERMSIG(how),
            strsignal(WTERMSIG(how)));
    else
        say("PE %u of %u ended with status %d without shmem_finalize: the job ends", rank, run.size, status);
    end_job(status ? status : EXIT_FAILURE);
}

// What a PE started and left ends with it, while its number, which is its group's, is still its own: it is
// looked at first and taken off afterwards.
static void reap(void)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
        pid_t pid = info.si_pid;
        unsigned i = 0;
        int how;

        while (i < run.size && run.pid[i] != pid)
            i++;
        if (i < run.size) {
            kill(-pid, SIGKILL);
            dock_keeper_tell(&run.keeper, -pid);
        }
        if (waitpid(pid, &how, 0) == pid && i < run.size)
            ended(i, how);
        info.si_pid = 0;
    }
}

static void press_on(void)
{
    uint64_t since = dock_now_ns() - run.ending_ns;

    if (since > GRACE_NS + TERM_NS) {
        signal_all(SIGKILL);
    } else if (since > GRACE_NS && !run.asked) {
        signal_all(SIGTERM);
        signal_all(SIGCONT); // a stopped one would not hear
        run.asked = true;
    }
}

static void see_it_through(void)
{
    struct timespec tick = {.tv_nsec = 20000000};
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (reap(); run.running; reap()) {
        sigtimedwait(&child, NULL, &tick);
        if (caught && !run.ending_ns) {
            say("signal %d (%s): the job ends", (int)caught, strsignal(caught));
            run.cause_known = true;
            end_job(128 + caught);
            signal_all(caught);
        }
        if (run.ending_ns)
            press_on();
    }
    dock_keeper_sweep(&run.keeper);
}

static void usage(void)
{
    say("usage: oshrun [-np|-n N] PROGRAM [ARGUMENT...]");
    exit(USAGE);
}

static char **parse(char **argv)
{
    char *end;

    run.size = 1;
    for (argv++; *argv && **argv == '-'; argv++) {
        if (strcmp(*argv, "--") == 0)
            return argv + 1;
        if ((strcmp(*argv, "-np") != 0 && strcmp(*argv, "-n") != 0) || !argv[1])
            usage();
        unsigned long n = strtoul(*++argv, &end, 10);
        if (*end || n < 1 || n > DOCK_JOB_MAX) {
            say("%s PEs: 1 to %d are possible", *argv, DOCK_JOB_MAX);
            exit(USAGE);
        }
        run.size = (unsigned)n;
    }
    return argv;
}

static void take_signals(void)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t child;

    struct sigaction was;

    nohup = sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
    for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] != SIGHUP || !nohup)
            sigaction(ours[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGPIPE, SIG_IGN); // the keeper may be killed, and who reads us may go
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL); // it ends the naps of see_it_through
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

// Started with closed ones (>&-), it would open its own files in their place, where its processes lose them.
static void have_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    char **program;

    (void)argc;
    have_standard_descriptors();
    program = parse(argv);
    if (!*program)
        usage();
    take_signals();
    if (make_directory())
        return EXIT_FAILURE;
    if (dock_keeper_start(&run.keeper, run.dir) || dock_job_open(run.file, run.size, &run.job)) {
        dock_keeper_end(&run.keeper, run.dir);
        return EXIT_FAILURE;
    }
    if (start_all(program))
        end_job(EXIT_FAILURE);
    see_it_through();
    dock_keeper_end(&run.keeper, run.dir);
    return run.status;
}
