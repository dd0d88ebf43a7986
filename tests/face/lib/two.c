// SPDX-License-Identifier: MIT
#include "face/lib/two.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// cmocka's way out of a test; a plain program is linked without it and exits.
void _fail(const char *file, int line) __attribute__((weak));

static bool in_child;

void check_failed(const char *file, int line, const char *fmt, ...)
{
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(stderr, "%s:%d: %s%s\n", file, line, in_child ? "(child) " : "", text);
    if (in_child)
        _exit(1);
    if (_fail)
        _fail(file, line);
    exit(1);
}

void tell(int sock, const void *p, size_t n)
{
    CHECK_INT(send(sock, p, n, MSG_NOSIGNAL), n);
}

void hear(int sock, void *p, size_t n)
{
    struct pollfd fd = {.fd = sock, .events = POLLIN};

    CHECK_INT(poll(&fd, 1, 20000), 1);
    CHECK_INT(recv(sock, p, n, MSG_WAITALL), n);
}

void meet(int sock)
{
    char c = 'm';

    tell(sock, &c, 1);
    hear(sock, &c, 1);
}

void two_processes(void (*left)(int sock), void (*right)(int sock))
{
    int sv[2], status;
    pid_t child;

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (!child) {
        in_child = true;
        close(sv[0]);
        right(sv[1]);
        _exit(0);
    }
    close(sv[1]);
    left(sv[0]);
    CHECK_INT(waitpid(child, &status, 0), child);
    close(sv[0]);
    CHECK_INT(status, 0);
}
