// SPDX-License-Identifier: MIT
#include "device/identity.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"
#include "device/profile.h"

static struct dock_identity self;
static struct dock_identity *_Atomic changed; // NULL: `self` is still true
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char default_name[] = "drydock0";

static bool name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    return n && n < DOCK_NAME_MAX && !name[n] && name[0] != '.';
}

static void take_name(void)
{
    const char *name = getenv("DRYDOCK_NAME");

    if (name && !name_ok(name)) {
        dock_warn(
            "DRYDOCK_NAME=\"%s\" is no device name (letters, digits, '_', '-', '.', fewer than %d); using %s",
            name, DOCK_NAME_MAX, default_name);
        name = NULL;
    }
    snprintf(self.name, sizeof self.name, "%s", name ? name : default_name);
}

static bool usable(const struct ifaddrs *a, int family)
{
    return a->ifa_addr && a->ifa_addr->sa_family == family && (a->ifa_flags & IFF_UP);
}

// EUI-64 of the first real interface; without one, of the host name: either way equal in all processes of a
// host.
static void take_guid(const struct ifaddrs *list)
{
    uint8_t mac[6] = {0x02, 0xdd};

    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        const struct sockaddr_ll *ll = (const void *)a->ifa_addr;
        if (usable(a, AF_PACKET) && !(a->ifa_flags & IFF_LOOPBACK) && ll->sll_halen == sizeof mac) {
            memcpy(mac, ll->sll_addr, sizeof mac);
            goto found;
        }
    }
    char host[65] = "";
    uint32_t hash = 2166136261u;
    gethostname(host, sizeof host - 1);
    for (const char *c = host; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    memcpy(mac + 2, &hash, sizeof hash);
found:
    memcpy(self.guid, (uint8_t[8]){mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}, 8);
}

static void add_gid(const uint8_t raw[16], const char *ifname)
{
    if (self.gids == DOCK_GID_TABLE - 1) {
        dock_info("the GID table is full: an address of %s is left out", ifname ? ifname : "this host");
        return;
    }
    memcpy(self.gid[self.gids].raw, raw, 16);
    self.gid[self.gids].ifindex = ifname ? if_nametoindex(ifname) : 0;
    self.gids++;
}

static void add_link_local(const struct ifaddrs *list)
{
    uint8_t raw[16] = {0xfe, 0x80};

    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        const struct sockaddr_in6 *in6 = (const void *)a->ifa_addr;
        if (usable(a, AF_INET6) && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)) {
            add_gid(in6->sin6_addr.s6_addr, a->ifa_name);
            return;
        }
    }
    memcpy(raw + 8, self.guid, sizeof self.guid);
    add_gid(raw, NULL);
}

static unsigned add_ipv4(const struct ifaddrs *list, bool loopback)
{
    uint8_t raw[16];
    unsigned found = 0;

    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        const struct sockaddr_in *in = (const void *)a->ifa_addr;
        if (!usable(a, AF_INET) || !(a->ifa_flags & IFF_LOOPBACK) == loopback)
            continue;
        dock_address_of_ipv4(raw, &in->sin_addr);
        add_gid(raw, a->ifa_name);
        found++;
    }
    return found;
}

static void add_plain_loopback(void)
{
    add_gid((const uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, NULL);
}

static void take_vendor(void)
{
    self.vendor_id = dock_profile()->vendor_id;
    self.vendor_part_id = dock_profile()->part_id;
}

static void take(void)
{
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list))
        dock_warn(
            "the addresses of this host cannot be listed (getifaddrs): the GID table shows loopback only");
    take_name();
    take_vendor();
    take_guid(list);
    add_link_local(list);
    if (!add_ipv4(list, false) && !add_ipv4(list, true))
        add_plain_loopback();
    if (list)
        freeifaddrs(list);
}

const struct dock_identity *dock_identity(void)
{
    const struct dock_identity *now;

    pthread_once(&once, take);
    now = atomic_load_explicit(&changed, memory_order_acquire); // pairs with dock_identity_add
    return now ? now : &self;
}

// One writer at a time: the engine of the process's device. What was the table stays readable for ever, for
// whoever still looks at it, and is led to by the newest.
int dock_identity_add(const uint8_t (*raw)[16], unsigned n)
{
    static struct kept {
        struct dock_identity id;
        struct kept *before;
    } * newest;
    const struct dock_identity *now = dock_identity();
    struct kept *kept = malloc(sizeof *kept);
    struct dock_identity *next;

    if (!kept)
        return -ENOMEM;
    kept->before = newest;
    next = &kept->id;
    *next = self;
    for (unsigned k = 0; k < n && next->gids < DOCK_GID_TABLE - 1; k++)
        memcpy(next->gid[next->gids++].raw, raw[k], 16);
    if (!memcmp(next->gid, now->gid, sizeof next->gid)) {
        free(kept);
        return 0;
    }
    newest = kept;
    atomic_store_explicit(&changed, next, memory_order_release);
    return 1;
}

bool dock_gid_filled(uint32_t index)
{
    const struct dock_identity *id = dock_identity();

    return index < id->gids && !dock_address_is_zero(id->gid[index].raw);
}
