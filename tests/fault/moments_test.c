// SPDX-License-Identifier: MIT
// Every moment that the device tells of, times the side that is struck, times the signal, times a target that
// polls or sleeps, times a third process on the same shared receive queue. A moment that does not come on a
// side is told as not reached and counts as nothing; one that comes on neither is missing, and fails. The
// steps of the straight ways of a SEND and of a WRITE are rows of their own, and so are those on memory that
// is not mapped, and of an atomic there, all of the sender alone. One cell: moments_test
// MOMENT[@peer|@send|@write|@plain|@atomic],SIDE,SIGNAL,busy|asleep,alone|third[,OCCURRENCE]; all of one
// moment: moments_test MOMENT timeout: 420 long-timeout: 3600
#include <stdio.h>

#include "base/clock.h"
#include "base/probe.h"
#include "base/seed.h"
#include "lib/kill.h"

#define NOTICE_MS 5000.0 // from a death to the survivors' knowing; measured are a few

static struct kill_board *board;
static uint64_t seed;

// A moment of an own queue, of one of the peer's, of the straight way of a SEND or of a WRITE, on plain
// memory, of an atomic there, which holds the target's word.
enum way { OWN, ABROAD, SENT, WRITTEN, PLAIN, ATOMIC, WAYS };

static const char *const way_name[] = {"", "@peer", "@send", "@write", "@plain", "@atomic"};

static const struct kill_cell way_cell[] = {
    [ABROAD] = {.abroad = true}, [SENT] = {.straight = true, .abroad = true}, [WRITTEN] = {.straight = true},
    [PLAIN] = {.plain = true},   [ATOMIC] = {.plain = true, .atomic = true},
};

static enum way way_of(const struct kill_cell *c)
{
    if (c->straight)
        return c->abroad ? SENT : WRITTEN;
    if (c->plain)
        return c->atomic ? ATOMIC : PLAIN;
    return c->abroad ? ABROAD : OWN;
}

struct sums {
    unsigned cells, reached, missed, bad;
    double slowest_ms;
    char slowest[80];
};

static void name_of(const struct kill_cell *c, char *out, size_t size)
{
    snprintf(out, size, "%s%s,%s,%s,%s,%s,%u", dock_moment_name[c->moment], way_name[way_of(c)],
             kill_role_name[c->side], kill_how_name[c->how], c->asleep ? "asleep" : "busy",
             c->third ? "third" : "alone", c->occurrence);
}

// Which of its occurrences: some moments are rare.
static unsigned occurrence_of(const struct kill_cell *c)
{
    bool rare = c->moment == DOCK_AT_STATE || c->side == KILL_TARGET || c->straight || c->atomic;
    unsigned most = c->moment == DOCK_AT_CONNECT                                       ? 1
                    : c->moment == DOCK_AT_REGISTER || c->moment == DOCK_AT_DEREGISTER ? 3
                    : rare                                                             ? 6
                                                                                       : 30;

    return 1 + (unsigned)(dock_decide(seed, (uint64_t)c->moment << 8 | c->side << 4 | c->how,
                                      c->asleep * 2u + c->third) %
                          most);
}

static void run_cell(struct kill_cell *c, struct sums *sums)
{
    struct kill_verdict v;
    char name[80];

    c->seed = dock_decide(seed, (uint64_t)c->moment, c->side * 8u + c->how);
    kill_run(board, c, &v);
    name_of(c, name, sizeof name);
    sums->cells++;
    sums->reached += v.reached && v.good;
    sums->missed += !v.reached && v.good;
    if (v.noticed_ms > sums->slowest_ms) {
        sums->slowest_ms = v.noticed_ms;
        snprintf(sums->slowest, sizeof sums->slowest, "%s", name);
    }
    if (v.good && v.noticed_ms > NOTICE_MS * test_slow()) {
        v.good = false;
        snprintf(v.words, sizeof v.words, "noticed after %.0f ms, expected at most %.0f", v.noticed_ms,
                 NOTICE_MS * test_slow());
    }
    if (!v.good) {
        sums->bad++;
        printf("FAILED %s: %s\n  again: DRYDOCK_SEED=%#llx scripts/run-one "
               "build/dev/tests/fault/moments_test %s\n",
               name, v.words, (unsigned long long)seed, name);
    }
}

// A moment that does not come in one cell of a row comes in none: the others of that moment and side are not
// run.
static void run_row(int moment, enum way way, enum kill_role side, struct sums *sums)
{
    unsigned missed = 0, n = 0;

    for (unsigned i = 0; i < KILL_HOWS * 4; i++) {
        struct kill_cell c = way_cell[way];
        c.moment = moment;
        c.side = side;
        c.how = (enum kill_how)(i / 4);
        c.asleep = i & 1;
        c.third = i & 2;
        // Under a sanitizer the first, and of the others every other one, by the seed.
        if (i && test_slow() > 1 && (dock_mix(seed + (uint64_t)moment * 256 + i) & 1))
            continue;
        if (way >= SENT &&
            c.third) // these touch no shared queue, or nothing of it that the long way does not
            continue;
        unsigned before = sums->missed;
        c.occurrence = missed ? 1 : occurrence_of(&c);
        run_cell(&c, sums);
        if (sums->missed != before && c.occurrence > 1) { // too rare for this number: the first, then
            sums->missed--;
            sums->cells--;
            c.occurrence = 1;
            run_cell(&c, sums);
        }
        missed += sums->missed != before;
        n++;
    }
    if (missed)
        printf("not reached: %s%s on the %s, %u of %u cells\n", dock_moment_name[moment], way_name[way],
               kill_role_name[side], missed, n);
}

// On one side at least.
static void demand(int moment, const char *whose, unsigned before, struct sums *sums)
{
    if (sums->reached != before)
        return;
    sums->bad++;
    printf("FAILED %s%s: expected on one side at least, got on none\n  again: DRYDOCK_SEED=%#llx "
           "scripts/run-one build/dev/tests/fault/moments_test %s\n",
           dock_moment_name[moment], whose, (unsigned long long)seed, dock_moment_name[moment]);
}

// Completing is done in the own CQ and in the peer's, and a request goes two ways: rows of their own.
static void run_elsewhere(int m, enum way way, struct sums *sums)
{
    unsigned before = sums->reached;

    run_row(m, way, KILL_INITIATOR, sums);
    demand(m, way_name[way], before, sums);
}

static void run_moment(int m, struct sums *sums)
{
    bool completing = m == DOCK_AT_CQE_LOCK || m == DOCK_AT_CQE_WRITE || m == DOCK_AT_COMPLETE;
    unsigned before = sums->reached;

    for (enum kill_role side = KILL_INITIATOR; side <= KILL_TARGET; side++)
        run_row(m, OWN, side, sums);
    demand(m, way_name[OWN], before, sums);
    if (completing)
        run_elsewhere(m, ABROAD, sums);
    if (completing || (m >= DOCK_AT_ENTER && m <= DOCK_AT_PLACE))
        run_elsewhere(m, SENT, sums);
    if (completing || m == DOCK_AT_ENTER || m == DOCK_AT_PLACE)
        run_elsewhere(m, WRITTEN, sums);
    if (m == DOCK_AT_PLACE) {
        run_elsewhere(m, PLAIN, sums);
        run_elsewhere(m, ATOMIC, sums);
    }
}

static int find(const char *const *names, int n, const char *name, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == len && !strncmp(names[i], name, len))
            return i;
    fprintf(stderr, "no %.*s\n", (int)len, name);
    exit(2);
}

static struct kill_cell parse(char *text)
{
    static const char *const sleep_name[] = {"busy", "asleep"}, *const third_name[] = {"alone", "third"};
    struct kill_cell c;
    char *word[6] = {0};
    int n = 0;

    for (char *w = strtok(text, ","); w && n < 6; w = strtok(NULL, ","))
        word[n++] = w;
    if (n < 5)
        exit(2);
    const char *way = strchr(word[0], '@');
    c = way_cell[way ? find(way_name, WAYS, way, strlen(way)) : OWN];
    c.moment = find(dock_moment_name, DOCK_MOMENT_COUNT, word[0], strcspn(word[0], "@"));
    c.side = (enum kill_role)find(kill_role_name, 2, word[1], strlen(word[1]));
    c.how = (enum kill_how)find(kill_how_name, KILL_HOWS, word[2], strlen(word[2]));
    c.asleep = find(sleep_name, 2, word[3], strlen(word[3]));
    c.third = find(third_name, 2, word[4], strlen(word[4]));
    c.occurrence = n > 5 ? (unsigned)atoi(word[5]) : occurrence_of(&c);
    return c;
}

int main(int argc, char **argv)
{
    struct sums sums = {0};
    uint64_t begin = dock_now_ns();

    setvbuf(stdout, NULL, _IOLBF, 0);
    seed = dock_seed();
    board = test_shared(sizeof *board);
    printf("seed %#llx\n", (unsigned long long)seed);
    for (int i = 1; i < argc; i++) {
        if (!strchr(argv[i], ',')) {
            run_moment(find(dock_moment_name, DOCK_MOMENT_COUNT, argv[i], strlen(argv[i])), &sums);
            continue;
        }
        struct kill_cell c = parse(argv[i]);
        run_cell(&c, &sums);
    }
    for (unsigned round = 0; argc < 2 && round < (test_long() ? 8 : 1); round++, seed = dock_mix(seed))
        for (int m = 0; m < DOCK_MOMENT_COUNT; m++)
            run_moment(m, &sums);
    printf("%u cells: %u as expected, %u not reached, %u failed; slowest to notice a death: %.1f ms of %.0f "
           "(%s); %.0f s\n",
           sums.cells, sums.reached, sums.missed, sums.bad, sums.slowest_ms, NOTICE_MS * test_slow(),
           sums.slowest, (double)(dock_now_ns() - begin) / 1e9);
    return sums.bad != 0;
}
