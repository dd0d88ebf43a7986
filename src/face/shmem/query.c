// SPDX-License-Identifier: MIT
// Who, how many, what can be reached; names and versions.
#include <stdio.h>
#include <string.h>

#include "face/shmem/api.h"
#include "face/shmem/shmem_face.h"

int shmem_my_pe(void)
{
    if (__builtin_expect(osh.n == 0, 0))
        osh_bad_pe(0, 0);
    return osh.me;
}
API(shmem_my_pe);

int shmem_n_pes(void)
{
    if (__builtin_expect(osh.n == 0, 0))
        osh_bad_pe(0, 0);
    return osh.n;
}
API(shmem_n_pes);

void shmem_query_thread(int *provided)
{
    *provided = osh.thread;
}
API(shmem_query_thread);

void shmem_query_initialized(int *initialized)
{
    *initialized = osh.n != 0;
}
API(shmem_query_initialized);

int shmem_pe_accessible(int pe)
{
    return pe >= 0 && pe < shmem_n_pes();
}
API(shmem_pe_accessible);

static bool inside(const struct osh_range *r, const void *addr)
{
    return (uintptr_t)addr - r->base < r->len;
}

int shmem_addr_accessible(const void *addr, int pe)
{
    if (!shmem_pe_accessible(pe))
        return 0;
    const struct osh_range *r = osh.pe[osh.me].card.range;
    return inside(&r[OSH_HEAP], addr) || inside(&r[OSH_DATA], addr);
}
API(shmem_addr_accessible);

void *shmem_ptr(const void *dest, int pe)
{
    if (!shmem_addr_accessible(dest, pe))
        return NULL;
    if (pe == osh.me)
        return (void *)(uintptr_t)dest;
    if (!inside(&osh.pe[osh.me].card.range[OSH_HEAP], dest) || !osh.pe[pe].heap)
        return NULL; // static data is not mapped
    return osh.pe[pe].heap + ((const char *)dest - osh.heap);
}
API(shmem_ptr);

void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)
{
    const struct dock_shmem_team *t = osh_team(team);

    return t && pe >= 0 && pe < t->g.size ? shmem_ptr(dest, osh_member(&t->g, pe)) : NULL;
}
API(shmem_team_ptr);

void shmem_info_get_version(int *major, int *minor)
{
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}
API(shmem_info_get_version);

void shmem_info_get_name(char *name)
{
    snprintf(name, SHMEM_MAX_NAME_LEN, "%s", SHMEM_VENDOR_STRING);
}
API(shmem_info_get_name);

void shmem_pcontrol(int level, ...)
{
    (void)level;
}
API(shmem_pcontrol);

void start_pes(int npes)
{
    (void)npes;
    if (osh.n == 0)
        shmem_init();
}
API(start_pes);

int _my_pe(void)
{
    return shmem_my_pe();
}
API(_my_pe);

int _num_pes(void)
{
    return shmem_n_pes();
}
API(_num_pes);
