// SPDX-License-Identifier: MIT
// An MPI program whose every value is known beforehand: messages short and long, an allreduce, and a window
// that is put to, got from and added to. Each rank says `right` or what it found instead.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LONG_MESSAGE (1 << 18) // in int: above every limit of a message that is copied

static int rank, ranks, wrong;

static void expect(const char *what, long expected, long got)
{
    if (expected == got)
        return;
    wrong++;
    if (wrong <= 10)
        printf("rank %d: %s: expected %ld, got %ld\n", rank, what, expected, got);
}

static int pattern(int from, int length, int i)
{
    return from * 1000003 + length * 31 + i;
}

// Once around the ring of ranks, each length to the right.
static void messages(void)
{
    static const int lengths[] = {0, 1, 2, 100, 5000, LONG_MESSAGE};
    int *out = malloc(LONG_MESSAGE * sizeof *out), *in = malloc(LONG_MESSAGE * sizeof *in);
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, count;
    MPI_Status status;

    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        for (int i = 0; i < lengths[k]; i++)
            out[i] = pattern(rank, lengths[k], i);
        MPI_Sendrecv(out, lengths[k], MPI_INT, right, (int)k, in, LONG_MESSAGE, MPI_INT, left, (int)k,
                     MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        expect("length of a message", lengths[k], count);
        for (int i = 0; i < count; i++)
            expect("word of a message", pattern(left, lengths[k], i), in[i]);
    }
    free(out);
    free(in);
}

static void allreduce(void)
{
    enum { N = 1000 };
    long mine[N], sum[N], most[N];

    for (int i = 0; i < N; i++)
        mine[i] = (long)(rank + 1) * i;
    MPI_Allreduce(mine, sum, N, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(mine, most, N, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        expect("sum of an allreduce", (long)ranks * (ranks + 1) / 2 * i, sum[i]);
        expect("maximum of an allreduce", (long)ranks * i, most[i]);
    }
}

// Word r of each window is written by rank r; the word behind them counts what all ranks add.
static void window(void)
{
    enum { ADDS = 50 };
    long *mem, one = 1, before, mine, last = -1;
    MPI_Win win;

    MPI_Win_allocate((ranks + 1) * (MPI_Aint)sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem,
                     &win);
    for (int i = 0; i <= ranks; i++)
        mem[i] = 0;
    MPI_Win_fence(0, win);
    for (int to = 0; to < ranks; to++) {
        mine = 100L * rank + 7;
        MPI_Put(&mine, 1, MPI_LONG, to, rank, 1, MPI_LONG, win);
    }
    MPI_Win_fence(0, win);
    for (int i = 0; i < ranks; i++)
        expect("word that was put", 100L * i + 7, mem[i]);
    MPI_Win_fence(0, win);
    MPI_Win_lock_all(0, win);
    for (int to = 0; to < ranks; to++) {
        long got = -1;
        MPI_Get(&got, 1, MPI_LONG, to, to, 1, MPI_LONG, win);
        MPI_Win_flush(to, win);
        expect("word that was got", 100L * to + 7, got);
    }
    for (int i = 0; i < ADDS; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, ranks, MPI_SUM, win);
        MPI_Win_flush(0, win);
        expect("the counter grows under its reader", 1, before > last);
        last = before;
    }
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    if (rank == 0)
        expect("what all ranks added", (long)ADDS * ranks, mem[ranks]);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    messages();
    allreduce();
    window();
    if (!wrong)
        printf("rank %d of %d: right\n", rank, ranks);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
