// SPDX-License-Identifier: MIT
// A seccomp filter that answers as Docker's default profile does on x86-64 to a process without capabilities.
#ifndef TESTS_LIB_CONTAINER_H
#define TESTS_LIB_CONTAINER_H
#ifdef __x86_64__

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// The numbers that it allows, whatever their arguments; all others are EPERM.
static const uint16_t container_allows[][2] = {
    {0, 40},    {42, 55},   {57, 102},  {104, 133}, {137, 138}, {140, 152}, {154, 154}, {157, 162},
    {186, 211}, {213, 226}, {228, 235}, {240, 245}, {247, 247}, {251, 255}, {257, 271}, {273, 278},
    {280, 297}, {299, 299}, {301, 303}, {305, 307}, {309, 311}, {314, 319}, {322, 322}, {324, 334},
    {424, 424}, {434, 434}, {436, 437}, {439, 439}, {441, 441}, {444, 449}};

// What it looks at more closely: personality by its values, socket by its family, clone by namespaces.
static const uint32_t container_personalities[] = {0, 8, 0x20000, 0x20008, 0xffffffff};
#define CONTAINER_NO_FAMILY 40u          // of vsock
#define CONTAINER_NAMESPACES 0x7e020000u // flags of clone

struct container_code {
    struct sock_filter at[256];
    unsigned short n;
};

static inline void container_put(struct container_code *c, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    c->at[c->n++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static inline void container_return(struct container_code *c, uint32_t what)
{
    container_put(c, BPF_RET | BPF_K, what, 0, 0);
}

// If the number is `number`: load its first argument and run the `steps` that follow; else pass them.
static inline void container_case(struct container_code *c, uint32_t number, uint8_t steps)
{
    container_put(c, BPF_JMP | BPF_JEQ | BPF_K, number, 0, (uint8_t)(steps + 1));
    container_put(c, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args), 0, 0);
}

static inline bool container_filter(void)
{
    enum { RANGES = sizeof container_allows / sizeof *container_allows, PERSONALITIES = 5 };
    const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
    struct container_code c = {.n = 0};

    container_put(&c, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    container_put(&c, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    container_return(&c, SECCOMP_RET_ERRNO | ENOSYS);
    container_case(&c, SYS_clone, 3);
    container_put(&c, BPF_JMP | BPF_JSET | BPF_K, CONTAINER_NAMESPACES, 0, 1);
    container_return(&c, refuse);
    container_return(&c, SECCOMP_RET_ALLOW);
    container_case(&c, SYS_socket, 3);
    container_put(&c, BPF_JMP | BPF_JEQ | BPF_K, CONTAINER_NO_FAMILY, 0, 1);
    container_return(&c, refuse);
    container_return(&c, SECCOMP_RET_ALLOW);
    container_case(&c, SYS_personality, PERSONALITIES + 2);
    for (unsigned i = 0; i < PERSONALITIES; i++)
        container_put(&c, BPF_JMP | BPF_JEQ | BPF_K, container_personalities[i], (uint8_t)(PERSONALITIES - i),
                      0);
    container_return(&c, refuse);
    container_return(&c, SECCOMP_RET_ALLOW);
    for (unsigned i = 0; i < RANGES; i++) {
        container_put(&c, BPF_JMP | BPF_JGE | BPF_K, container_allows[i][0], 0, 2);
        container_put(&c, BPF_JMP | BPF_JGT | BPF_K, container_allows[i][1], 1, 0);
        container_return(&c, SECCOMP_RET_ALLOW);
    }
    container_return(&c, refuse);
    struct sock_fprog p = {.len = c.n, .filter = c.at};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

#endif
#endif
