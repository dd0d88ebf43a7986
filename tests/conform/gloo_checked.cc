// SPDX-License-Identifier: MIT
// Collectives of Gloo over its ibverbs transport, with values that are known beforehand: gloo_checked RANK
// RANKS DIRECTORY, once for each rank; they find each other by files in DIRECTORY.
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static int rank, ranks;
static long wrong;

static void expect(const char *what, std::size_t i, float expected, float got)
{
    if (expected == got)
        return;
    if (wrong++ < 10)
        std::printf("rank %d: %s: element %zu: expected %g, got %g\n", rank, what, i, expected, got);
}

// Small whole numbers, which a float holds exactly in whatever order they are added.
static float value(std::size_t i, int of_rank, int turn)
{
    return static_cast<float>(i % 97 + of_rank + turn);
}

template <class Algorithm, class... More>
static void turns(const char *what, const std::shared_ptr<gloo::rendezvous::Context> &all, std::size_t n,
                  bool sum, More... more)
{
    // Never freed: Gloo's own buffers must not end before their last completion, which nothing here can wait
    // for.
    auto &mem = *new std::vector<float>(n);
    auto &algorithm = *new Algorithm(all, std::vector<float *>{mem.data()}, n, more...);

    for (int turn = 0; turn < 20; turn++) {
        for (std::size_t i = 0; i < n; i++)
            mem[i] = value(i, rank, turn);
        algorithm.run();
        for (std::size_t i = 0; i < n; i++) {
            float expected = value(i, 0, turn);
            for (int other = 1; sum && other < ranks; other++)
                expected += value(i, other, turn);
            expect(what, i, expected, mem[i]);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    rank = std::atoi(argv[1]);
    ranks = std::atoi(argv[2]);
    gloo::transport::ibverbs::attr attr{"drydock0", 1, 1};
    auto device = gloo::transport::ibverbs::CreateDevice(attr);
    gloo::rendezvous::FileStore store(argv[3]);
    auto all = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    all->connectFullMesh(store, device);
    for (std::size_t n : {1, 7, 1000, 65536, 1000000}) {
        turns<gloo::AllreduceRingChunked<float>>("ring", all, n, true);
        turns<gloo::AllreduceHalvingDoubling<float>>("halving and doubling", all, n, true);
        turns<gloo::BroadcastOneToAll<float>>("broadcast", all, n, false, 0);
    }
    auto &barrier = *new gloo::BarrierAllToAll(all);
    for (int turn = 0; turn < 100; turn++)
        barrier.run();
    if (!wrong)
        std::printf("rank %d of %d: right\n", rank, ranks);
    std::fflush(stdout);
    _exit(wrong != 0);
}
