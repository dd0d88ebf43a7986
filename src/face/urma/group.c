// SPDX-License-Identifier: MIT
// Jetty groups: several RM jettys of a process under one number. Who sends to the group does not name a
// member: it is picked by turns, or by the hint in the request. A group has a name, and who asks for a name
// that is there already is given that group.
#include <stdlib.h>

#include "face/urma/urma_face.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ur_group *groups; // of the process, under lock
static uint32_t count;

static struct ur_group *find(const urma_context_t *ctx, const char *name)
{
    struct ur_group *g = groups;

    while (g && (g->g.urma_ctx != ctx || !*name || strcmp(g->g.cfg.name, name) != 0))
        g = g->next;
    return g;
}

static int make(urma_context_t *ctx, const urma_jetty_grp_cfg_t *cfg, struct ur_group **out)
{
    struct dock_bundle_attr attr = {
        .policy = cfg->policy == URMA_JETTY_GRP_POLICY_RR ? DOCK_BUNDLE_TURN : DOCK_BUNDLE_HINT,
        .number = cfg->id,
        .events = ur_context(ctx)->events,
    };
    struct ur_group *g;
    int err;

    if (count >= ur_caps()->max_jetty_grp)
        return dock_refuse(-ENOMEM, "urma_create_jetty_grp: there are %u groups, no more are offered", count);
    g = calloc(1, sizeof *g);
    if (!g)
        return dock_no_memory("a jetty group");
    attr.user = g;
    g->g.jetty_list = calloc(ur_caps()->max_jetty_in_jetty_grp, sizeof(urma_jetty_t *));
    err = g->g.jetty_list ? 0 : dock_no_memory("a list of jettys");
    if (!err)
        err = dock_bundle_create(ur_dev(ctx), &attr, &g->dev);
    if (err) {
        free(g->g.jetty_list);
        free(g);
        return err;
    }
    g->g.urma_ctx = ctx;
    g->g.cfg = *cfg;
    g->users = 1;
    ur_fill_id(&g->g.jetty_grp_id, ctx, dock_bundle_number(g->dev));
    pthread_mutex_init(&g->g.list_mutex, NULL);
    pthread_mutex_init(&g->g.event_mutex, NULL);
    pthread_cond_init(&g->g.event_cond, NULL);
    g->next = groups;
    groups = g;
    count++;
    ur_use(&ctx->ref);
    *out = g;
    return 0;
}

static int share(struct ur_group *g, const urma_jetty_grp_cfg_t *cfg)
{
    const urma_jetty_grp_cfg_t *c = &g->g.cfg;

    if (c->policy != cfg->policy || c->flag.bs.token_policy != cfg->flag.bs.token_policy ||
        c->token_value.token != cfg->token_value.token || (cfg->id && cfg->id != dock_bundle_number(g->dev)))
        return dock_refuse(
            -EINVAL, "urma_create_jetty_grp: group %s is there, with another policy, token or id", c->name);
    g->users++;
    return 0;
}

urma_jetty_grp_t *urma_create_jetty_grp(urma_context_t *ctx, urma_jetty_grp_cfg_t *cfg)
{
    struct ur_group *g;
    int err;

    if (!ctx || !cfg || strnlen(cfg->name, sizeof cfg->name) == sizeof cfg->name)
        return ur_none(dock_refuse(
            -EINVAL, "urma_create_jetty_grp: no context, or no configuration with a name that ends"));
    if (cfg->policy != URMA_JETTY_GRP_POLICY_RR && cfg->policy != URMA_JETTY_GRP_POLICY_HASH_HINT)
        return ur_none(dock_refuse(-EINVAL, "urma_create_jetty_grp: policy %d: by turns (0), by hint (1)",
                                   (int)cfg->policy));
    dock_lock(&lock);
    g = find(ctx, cfg->name);
    err = g ? share(g, cfg) : make(ctx, cfg, &g);
    dock_unlock(&lock);
    return err ? ur_none(err) : &g->g;
}

// The lock is held from the last look at the users on: nobody is handed a group that goes.
static int end_one_use(struct ur_group *g, bool *last)
{
    int err;

    *last = g->users == 1;
    if (!*last) {
        g->users--;
        return 0;
    }
    err = dock_bundle_close(g->dev);
    if (err)
        return err;
    for (struct ur_group **at = &groups; *at; at = &(*at)->next)
        if (*at == g) {
            *at = g->next;
            break;
        }
    count--;
    return 0;
}

urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t *jetty_grp)
{
    struct ur_group *g = (struct ur_group *)jetty_grp;
    bool last;
    int err;

    if (!jetty_grp)
        return dock_refuse(URMA_EINVAL, "urma_delete_jetty_grp: no group given");
    dock_lock(&lock);
    err = end_one_use(g, &last);
    dock_unlock(&lock);
    if (err)
        return URMA_ENOPERM;
    if (!last)
        return URMA_SUCCESS;
    dock_bundle_free(g->dev); // waits for acknowledgements: without the lock, as their givers may want it
    ur_drop(&jetty_grp->urma_ctx->ref);
    pthread_cond_destroy(&jetty_grp->event_cond);
    pthread_mutex_destroy(&jetty_grp->event_mutex);
    pthread_mutex_destroy(&jetty_grp->list_mutex);
    free(jetty_grp->jetty_list);
    free(g);
    return URMA_SUCCESS;
}

// ---- members: what the public structure shows

int ur_check_member(const urma_jetty_cfg_t *c, const char *call)
{
    const urma_jfr_cfg_t *r = &c->shared.jfr->jfr_cfg;
    const urma_jetty_grp_cfg_t *g;

    if (!c->jetty_grp)
        return 0;
    g = &c->jetty_grp->cfg;
    if (c->jfs_cfg.trans_mode != URMA_TM_RM)
        return dock_refuse(-EINVAL, "%s: only RM jettys are members of groups", call);
    if (g->flag.bs.token_policy != r->flag.bs.token_policy || g->token_value.token != r->token_value.token)
        return dock_refuse(-EINVAL, "%s: token and policy of the group and of the JFR differ", call);
    return 0;
}

void ur_group_join(urma_jetty_grp_t *g, urma_jetty_t *jetty)
{
    dock_lock(&g->list_mutex);
    g->jetty_list[g->jetty_cnt++] = jetty;
    dock_unlock(&g->list_mutex);
}

void ur_group_leave(urma_jetty_grp_t *g, urma_jetty_t *jetty)
{
    dock_lock(&g->list_mutex);
    for (uint32_t i = 0; i < g->jetty_cnt; i++)
        if (g->jetty_list[i] == jetty) {
            g->jetty_list[i] = g->jetty_list[--g->jetty_cnt];
            break;
        }
    dock_unlock(&g->list_mutex);
}
