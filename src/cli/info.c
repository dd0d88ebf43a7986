// SPDX-License-Identifier: MIT
// drydock info: what a program would find here, and what this machine keeps from it.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena/rundir.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/loader.h"
#include "cli/machine.h"
#include "device/device.h"
#include "device/identity.h"
#include "device/limits.h"

static void print_device(void)
{
    const struct dock_identity *id = dock_identity();
    const char *profile = getenv("DRYDOCK_PROFILE");
    const uint8_t *g = id->guid;

    printf("device\n  name     %s (RoCE, software)\n", id->name);
    printf("  guid     %02x%02x:%02x%02x:%02x%02x:%02x%02x\n", g[0], g[1], g[2], g[3], g[4], g[5], g[6],
           g[7]);
    printf("  vendor   0x%06x, part %u\n", id->vendor_id, id->vendor_part_id);
    printf("  profile  %s\n", profile && *profile ? profile : "strict");
    for (unsigned i = 0; i < id->gids; i++) {
        char address[INET6_ADDRSTRLEN];
        char netdev[IF_NAMESIZE];

        inet_ntop(AF_INET6, id->gid[i].raw, address, sizeof(address));
        printf("  gid %-4u %s %s\n", i, address, if_indextoname(id->gid[i].ifindex, netdev) ? netdev : "");
    }
}

static void print_limits(void)
{
    struct dock_limits l;

    dock_limits_read(&l);
    printf("limits\n");
    printf("  objects  %u queue pairs, %u completion queues, %u shared receive queues\n", l.max_qp, l.max_cq,
           l.max_srq);
    printf("           %u memory regions, %u windows, %u protection domains, %u address handles\n", l.max_mr,
           l.max_mw, l.max_pd, l.max_ah);
    printf("  depths   queue pair %u, shared receive queue %u, completion queue %u\n", l.max_qp_wr,
           l.max_srq_wr, l.max_cqe);
    printf("  request  %u pieces, %u bytes inline, %" PRIu64 " bytes; %u reads and atomics at once\n",
           l.max_sge, l.max_inline, l.max_msg, l.max_rd_atomic);
    printf("  region   %" PRIu64 " bytes\n", l.max_mr_size);
}

static void print_directory(void)
{
    struct dock_rundir dir;
    int rc = dock_rundir_open(NULL, &dir);

    printf("runtime directory\n");
    if (rc) {
        printf("  not usable: %s\n", dock_log_last());
        return;
    }
    printf("  %s, usable\n", dir.path);
    dock_rundir_close(&dir);
}

static void print_libraries(void)
{
    static const char *const names[] = {"libibverbs.so.1",      "librdmacm.so.1", "liburma.so.0",
                                        "liburma_common.so.0",  "libtpsa.so.0",   "liburma_ubagg.so.0",
                                        "libdrydock_preload.so"};
    struct dock_loader loader;
    int rc = dock_loader_find(&loader);

    printf("libraries\n  %s%s\n", rc == 0 ? loader.dir : "not usable: ",
           rc == 0 ? ""
                   : (rc == -ENOENT ? "missing beside this command"
                                    : "their directory's name holds a blank or colon"));
    for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(names[0]); i++)
        printf("  %-22s %s\n", names[i], dock_loader_has(&loader, names[i]) ? "there" : "not there");
}

static void print_machine(void)
{
    size_t count;
    const struct dock_ability *ability = dock_machine_abilities(&count);

    printf("this machine\n");
    for (; count; count--, ability++) {
        int rc = ability->ask();

        if (rc == 0)
            printf("  %-10s  yes\n", ability->name);
        else
            printf("  %-10s  no (%s): %s\n", ability->name, strerror(-rc), ability->without);
    }
}

static void print_environment(void)
{
    size_t count;
    const struct dock_variable *variable = dock_environment(&count);

    printf("environment\n");
    for (; count; count--, variable++) {
        const char *value = getenv(variable->name);

        printf("  %-20s %s%s%s%s\n", variable->name, value ? "= " : "", value ? value : "",
               value ? "   " : "", variable->meaning);
    }
}

int cli_info(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return cli_fail(CLI_USAGE, "usage: drydock info");
    printf("drydock %s\n", dock_version());
    print_device();
    print_limits();
    print_directory();
    print_libraries();
    print_machine();
    print_environment();
    return CLI_OK;
}
