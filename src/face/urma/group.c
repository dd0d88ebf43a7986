// SPDX-License-Identifier: MIT
// Jetty groups: the device has none yet, and says so in its capabilities.
#include "face/urma/urma_face.h"

urma_jetty_grp_t *urma_create_jetty_grp(urma_context_t *ctx, urma_jetty_grp_cfg_t *cfg)
{
    if (!ctx || !cfg || strnlen(cfg->name, sizeof cfg->name) == sizeof cfg->name)
        return ur_none(
            dock_refuse(-EINVAL, "urma_create_jetty_grp: no context, or no configuration with a name"));
    return ur_none(
        dock_refuse(-EINVAL, "urma_create_jetty_grp: this device has no groups (max_jetty_grp is 0)"));
}

urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t *jetty_grp)
{
    return dock_refuse(URMA_EINVAL, "urma_delete_jetty_grp: %p is no group", (void *)jetty_grp);
}
