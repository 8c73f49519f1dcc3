#!/usr/bin/env python3
"""All-reduce of PyTorch's Gloo over processes of one host: the same table as bench_all_reduce's, for one peer.

usage: all_reduce_gloo.py N_RANKS [MOST_MIB]
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, n, most):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=n)
    size = 1024
    while size <= most:
        x = torch.zeros(size // 4)
        calls = (4 << 20) // (size + 4096) + 1 if size < 1 << 20 else 4 if size < 16 << 20 else 1
        times = []
        for i in range(10):
            dist.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(x)
            took = torch.tensor([(time.perf_counter() - start) / calls], dtype=torch.float64)
            dist.all_reduce(took, op=dist.ReduceOp.MAX)
            if i > 0:
                times.append(took.item())
        if rank == 0:
            print(f"| {size} | {1e6 * statistics.median(times):.1f} |", flush=True)
        size *= 4
    dist.destroy_process_group()


if __name__ == "__main__":
    n = int(sys.argv[1])
    mp.spawn(work, args=(n, (int(sys.argv[2]) if len(sys.argv) > 2 else 256) << 20), nprocs=n)
