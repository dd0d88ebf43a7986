// SPDX-License-Identifier: MIT
// L19: numbers of teams. Six PEs.
#include "face/shmem/litmus.h"

void litmus_teams(void)
{
    shmem_team_t odd, back, none;
    shmem_ctx_t c;

    must("L19", shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, 3, NULL, 0, &odd) == 0, "split");
    must("L19", (odd != SHMEM_TEAM_INVALID) == (me % 2), "members alone get a team");
    if (odd != SHMEM_TEAM_INVALID) {
        must("L19", shmem_team_create_ctx(odd, 0, &c) == 0, "context of a team");
        if (me == 1) {
            shmem_ctx_long_p(c, &o->x, 9, 1); // member 1 is PE 3
            shmem_ctx_quiet(c);
        }
        shmem_team_sync(odd);
        must("L19", o->x == (me == 3 ? 9 : 0), "a put to member 1 goes to PE 3");
        must("L19", shmem_team_translate_pe(odd, 2, SHMEM_TEAM_WORLD) == 5, "member 2 is PE 5");
        shmem_ctx_destroy(c);
        shmem_team_destroy(odd);
    }
    must("L19", shmem_team_split_strided(SHMEM_TEAM_WORLD, 5, -1, 6, NULL, 0, &back) == 0, "backwards");
    must("L19", shmem_team_my_pe(back) == 5 - me, "a negative stride turns the order round");
    shmem_team_destroy(back);
    must("L19", shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1,
         "the invalid team");
    must("L19",
         shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &none) != 0 &&
             none == SHMEM_TEAM_INVALID,
         "split of the invalid team");
    must("L19", shmem_team_translate_pe(SHMEM_TEAM_WORLD, 6, SHMEM_TEAM_WORLD) == -1,
         "a PE that is not there");
    // More teams one after the other than there are slots.
    for (unsigned i = 0; i < 70; i++) {
        shmem_team_t t;
        must("L19", shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 6, NULL, 0, &t) == 0, "slots come back");
        shmem_team_sync(t);
        shmem_team_destroy(t);
    }
}
