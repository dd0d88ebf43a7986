// SPDX-License-Identifier: MIT
// Memory whose pages a handler of the program brings (userfaultfd): a registration asks for them as any write
// does, and the handler is asked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/internal.h"
#include "lib/maps.h"

#define PAGE 4096ul
#define PAGES 8ul
#define LEN (PAGES * PAGE)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_READ)

static struct {
    int fd;
    dock_a32 asked, over;
} handler;

static void bring(const struct uffd_msg *m)
{
    static _Alignas(4096) const char nines[PAGE] = {9};
    uint64_t at = m->arg.pagefault.address & ~(PAGE - 1);
    struct uffdio_writeprotect open = {.range = {at, PAGE}};
    struct uffdio_copy copy = {.dst = at, .src = (uintptr_t)nines, .len = PAGE};

    dock_set32(&handler.asked, dock_peek32(&handler.asked) + 1);
    if (m->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP)
        ioctl(handler.fd, UFFDIO_WRITEPROTECT, &open);
    else
        ioctl(handler.fd, UFFDIO_COPY, &copy);
}

static void *handle(void *arg)
{
    struct pollfd p = {.fd = handler.fd, .events = POLLIN};
    struct uffd_msg m;

    while (!dock_peek32(&handler.over))
        if (poll(&p, 1, 20) == 1 && read(handler.fd, &m, sizeof m) == sizeof m &&
            m.event == UFFD_EVENT_PAGEFAULT)
            bring(&m);
    return arg;
}

// Faults of [p, p + LEN) go to the handler. false: the kernel does not let us.
static bool watch(char *p, bool protect, pthread_t *t)
{
    struct uffdio_api api = {.api = UFFD_API, .features = protect ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0};
    struct uffdio_register r = {.range = {(uintptr_t)p, LEN},
                                .mode = protect ? UFFDIO_REGISTER_MODE_WP : UFFDIO_REGISTER_MODE_MISSING};
    struct uffdio_writeprotect shut = {.range = {(uintptr_t)p, LEN}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};

    memset(&handler, 0, sizeof handler);
    handler.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (handler.fd < 0 || ioctl(handler.fd, UFFDIO_API, &api) || ioctl(handler.fd, UFFDIO_REGISTER, &r) ||
        (protect && ioctl(handler.fd, UFFDIO_WRITEPROTECT, &shut)))
        return false;
    return !pthread_create(t, NULL, handle, NULL);
}

static void the_handler_is_asked(bool protect)
{
    char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct dock_dev *dev;
    struct dock_mr *mr;
    pthread_t t;
    uint32_t pd;

    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    if (protect)
        for (size_t i = 0; i < LEN; i += PAGE)
            p[i] = 9;
    if (!watch(p, protect, &t)) {
        close(handler.fd);
        assert_int_equal(dock_pd_destroy(dev, pd), 0);
        assert_int_equal(dock_dev_close(dev), 0);
        skip();
    }
    int err = dock_mr_register(dev, pd, (uintptr_t)p, LEN, (uintptr_t)p, RIGHTS, &mr);
    bool adopted = maps_look(p, LEN).adopted;
    if (!err)
        assert_int_equal(dock_mr_deregister(mr), 0);
    for (size_t i = 0; i < LEN; i += PAGE)
        assert_int_equal(p[i], 9);
    dock_set32(&handler.over, 1);
    pthread_join(t, NULL);
    close(handler.fd);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    munmap(p, LEN);
    assert_int_equal(err, 0);
    assert_false(adopted);
    assert_int_equal(dock_peek32(&handler.asked), PAGES);
}

static void pages_that_are_missing(void **state)
{
    (void)state;
    the_handler_is_asked(false);
}

static void pages_that_are_write_protected(void **state)
{
    (void)state;
    the_handler_is_asked(true);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator does not hand such faults on
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_that_are_missing),
        cmocka_unit_test(pages_that_are_write_protected),
    };

    return cmocka_run_group_tests_name("registration and userfaultfd", tests, NULL, NULL);
}
