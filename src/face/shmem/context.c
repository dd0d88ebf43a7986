// SPDX-License-Identifier: MIT
// Contexts as the program has them, and the two calls about order.
#include "face/shmem/api.h"
#include "face/shmem/shmem_face.h"

int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
{
    struct dock_shmem_team *t = osh_team(team);

    *ctx = SHMEM_CTX_INVALID;
    if (!t)
        return -1;
    return osh_ctx_open(t == &osh.world ? NULL : t, options, ctx);
}
API(shmem_team_create_ctx);

int shmem_ctx_create(long options, shmem_ctx_t *ctx)
{
    return shmem_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx);
}
API(shmem_ctx_create);

void shmem_ctx_destroy(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (osh.n == 0)
        osh_bad_pe(0, 0);
    if (osh_ctx(ctx) == osh.ctx)
        osh_fatal("the default context cannot be destroyed");
    osh_ctx_close(ctx);
}
API(shmem_ctx_destroy);

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID)
        return -1;
    if (osh.n == 0)
        osh_bad_pe(0, 0);
    *team = osh_ctx(ctx)->team ? osh_ctx(ctx)->team : SHMEM_TEAM_WORLD;
    return 0;
}
API(shmem_ctx_get_team);

void shmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config,
                             long config_mask)
{
    (void)ctx;
    (void)options;
    (void)config;
    (void)config_mask;
}
API(shmem_ctx_session_start);

void shmem_ctx_session_stop(shmem_ctx_t ctx)
{
    (void)ctx;
}
API(shmem_ctx_session_stop);

void shmem_ctx_fence(shmem_ctx_t ctx)
{
    if (osh.n == 0)
        osh_bad_pe(0, 0);
    if (ctx != SHMEM_CTX_INVALID)
        osh_fence(osh_ctx(ctx));
}
API(shmem_ctx_fence);

void shmem_fence(void)
{
    shmem_ctx_fence(SHMEM_CTX_DEFAULT);
}
API(shmem_fence);

void shmem_ctx_quiet(shmem_ctx_t ctx)
{
    if (osh.n == 0)
        osh_bad_pe(0, 0);
    if (ctx != SHMEM_CTX_INVALID)
        osh_quiet(osh_ctx(ctx));
}
API(shmem_ctx_quiet);

void shmem_quiet(void)
{
    shmem_ctx_quiet(SHMEM_CTX_DEFAULT);
}
API(shmem_quiet);

void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes)
{
    struct dock_shmem_ctx *c = osh_ctx(ctx);

    if (osh.n == 0)
        osh_bad_pe(0, 0);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    for (size_t i = 0; i < npes; i++)
        osh_quiet_way(c, &c->way[osh_world_pe(c, target_pes[i])]);
    dock_fence_full();
}
API(shmem_ctx_pe_quiet);

void shmem_pe_quiet(const int *target_pes, size_t npes)
{
    shmem_ctx_pe_quiet(SHMEM_CTX_DEFAULT, target_pes, npes);
}
API(shmem_pe_quiet);
