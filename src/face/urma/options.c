// SPDX-License-Identifier: MIT
// Setting and reading one option. A configuration value is a field of the object; what concerns the rings is
// read from the ring itself, and only the device decides about it.
#include "face/urma/options.h"

const struct ur_option *ur_option_find(const struct ur_option *table, size_t n, uint64_t opt)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].opt == opt)
            return &table[i];
    return NULL;
}

static urma_status_t set_pi_type(uint16_t *pi_type, const void *buf, const char *call)
{
    uint16_t type;

    memcpy(&type, buf, sizeof type);
    if (type > 1)
        return dock_refuse(URMA_EINVAL, "%s: a PI is absolute (0) or cumulative (1)", call);
    *pi_type = type;
    return URMA_SUCCESS;
}

static urma_status_t set_ring(const struct ur_choices *c, const void *buf, const char *call)
{
    uint64_t at;

    memcpy(&at, buf, sizeof at);
    if (!at || at % c->ring_align)
        return dock_refuse(URMA_EINVAL, "%s: a ring at %#llx: it begins at a multiple of %u", call,
                           (unsigned long long)at, c->ring_align);
    *c->ring = (void *)(uintptr_t)at;
    return URMA_SUCCESS;
}

urma_status_t ur_option_set(const struct ur_option *o, void *object, const struct ur_choices *c,
                            const void *buf, uint32_t len, const char *call)
{
    if (!o || len != o->size)
        return dock_refuse(URMA_EINVAL, "%s: there is no such option, or it is not of %u bytes", call, len);
    switch (o->live) {
    case UR_CONFIG:
        memcpy((char *)object + o->offset, buf, len);
        return URMA_SUCCESS;
    case UR_PI_TYPE:
        return set_pi_type(c->pi_type, buf, call);
    case UR_NUMBER:
        memcpy(c->number, buf, sizeof *c->number); // looked at when it is taken
        return URMA_SUCCESS;
    case UR_BASE:
        return set_ring(c, buf, call);
    default:
        return dock_refuse(URMA_EINVAL, "%s: option %#llx: doorbells and indices are the device's", call,
                           (unsigned long long)o->opt);
    }
}

static uint16_t index_of(const struct ur_live_values *v, uint32_t at)
{
    return (uint16_t)(v->pi_type ? at : at & (v->ring.entries - 1));
}

// What was chosen, or set, is known at any time.
static bool known(const struct ur_option *o, const struct ur_live_values *v)
{
    return v->active || o->live == UR_PI_TYPE || o->live == UR_STATUS ||
           (o->live == UR_NUMBER && v->number) || (o->live == UR_BASE && v->ring.base);
}

urma_status_t ur_option_get(const struct ur_option *o, const void *object, const struct ur_live_values *v,
                            void *buf, uint32_t len, const char *call)
{
    uint64_t value = 0;

    if (!o || len != o->size)
        return dock_refuse(URMA_EINVAL, "%s: there is no such option, or it is not of %u bytes", call, len);
    if (o->live == UR_CONFIG) {
        memcpy(buf, (const char *)object + o->offset, len);
        return URMA_SUCCESS;
    }
    if (!known(o, v))
        return dock_refuse(URMA_EINVAL, "%s: option %#llx: there is no ring before the object is active",
                           call, (unsigned long long)o->opt);
    switch (o->live) {
    case UR_BASE:
        value = (uintptr_t)v->ring.base;
        break;
    case UR_DOORBELL:
        value = (uintptr_t)v->ring.doorbell;
        break;
    case UR_NUMBER:
        value = v->number;
        break;
    case UR_PI:
        value = index_of(v, v->ring.pi);
        break;
    case UR_CI:
        value = index_of(v, v->ring.ci);
        break;
    case UR_PI_TYPE:
        value = v->pi_type;
        break;
    default:
        value = v->db_status;
    }
    memcpy(buf, &value, len); // little endian, as the rings are
    return URMA_SUCCESS;
}
