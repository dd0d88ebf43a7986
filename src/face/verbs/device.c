// SPDX-License-Identifier: MIT
// The device list: always exactly one device, in static storage, so that a pointer to it outlives every list.
#include <stdio.h>
#include <stdlib.h>

#include "device/identity.h"
#include "face/verbs/verbs_face.h"

// libmlx5 and libefa read a `const ops *` right behind whatever ibv_device they are shown, and compare it
// with their own. Ours points at a table of zeros that can be nobody's.
struct padded_device {
    struct ibv_device device;
    const void *ops;
    char rest[256];
};

static const void *const no_ops[64];
static struct padded_device the_device;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    struct ibv_device *d = &the_device.device;
    const char *root = vb_private_root();

    the_device.ops = no_ops;
    d->node_type = IBV_NODE_CA;
    d->transport_type = IBV_TRANSPORT_IB;
    snprintf(d->name, sizeof d->name, "%s", dock_identity()->name);
    snprintf(d->dev_name, sizeof d->dev_name, "uverbs0");
    snprintf(d->dev_path, sizeof d->dev_path, "%s/sys/class/infiniband_verbs/uverbs0", root);
    snprintf(d->ibdev_path, sizeof d->ibdev_path, "%s/sys/class/infiniband/%s", root, dock_identity()->name);
}

struct ibv_device *vb_device(void)
{
    pthread_once(&once, fill);
    return &the_device.device;
}

bool vb_is_our_device(const struct ibv_device *device, const char *call)
{
    if (device == vb_device())
        return true;
    errno =
        dock_refuse(ENODEV, "%s: %p is not a device from ibv_get_device_list", call, (const void *)device);
    return false;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibv_device **list = calloc(2, sizeof *list);

    if (num_devices)
        *num_devices = 0;
    if (!list) {
        errno = dock_refuse(ENOMEM, "ibv_get_device_list: no memory for the list");
        return NULL;
    }
    list[0] = vb_device();
    if (num_devices)
        *num_devices = 1;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return vb_is_our_device(device, "ibv_get_device_name") ? device->name : NULL;
}

// -1: there is no kernel device, so netlink knows no index of ours.
int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    __be64 guid = 0;

    if (vb_is_our_device(device, "ibv_get_device_guid"))
        memcpy(&guid, dock_identity()->guid, sizeof guid);
    return guid;
}
