"""Ranks that waited for others in vain."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from logtexts import CLOSED, SHUT, Scenario, child_failed, report, row, steps, traceback, v2, watchdog

MET = "I0201 10:00:00.000000 71 torch/distributed/run.py:800] starting\n"

SCENARIOS: dict[str, Scenario] = {
    "horovod shut down, nothing else": Scenario(
        {"mpi_log.txt": traceback(SHUT, prefix="[1,2]<stderr>:") + traceback(SHUT, prefix="[1,0]<stderr>:")},
        found=False,
        truth={"victims": [0, 2], "cause": None},
    ),
    "horovod below TensorFlow: the graph's error goes on": Scenario(
        {
            "mpi_log.txt": traceback(
                "tensorflow.python.framework.errors_impl.UnknownError: Graph execution error:\n\n"
                "Detected at node 'HorovodAllreduce' defined at (most recent call last):\n"
                '    File "/code/train.py", line 3, in <module>\n'
                "Node: 'HorovodAllreduce'\nHorovod has been shut down. This was caused by an exception on one of the ranks",
                prefix="[1,1]<stderr>:",
            )
        },
        found=False,
        truth={"victims": [1]},
    ),
    "horovod names the rank that does not submit": Scenario(
        {
            "mpi_log.txt": "[1,0]<stderr>:[2024-02-01 10:01:00.851506: W horovod/common/stall_inspector.cc:105] One or more "
            "tensors were submitted to be reduced by subset of ranks and are waiting for remainder of ranks\n"
            "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:3: [allreduce.grad_1, allreduce.grad_2]\n"
        },
        truth={"cause": "rank-did-not-join", "rank": 3},
    ),
    "a rank leaves early, the others lose it": Scenario(
        v2(steps(9) + traceback(CLOSED), steps(5), steps(9) + traceback(CLOSED)), found=False, truth={"rank": 1, "victims": [0, 2]}
    ),
    "torchrun's group: one rank hangs, the others time out": Scenario(
        {
            "user_logs/std_log_process_00.txt": traceback("RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 6000ms for recv operation to complete", prefix="[rank0]: ")
            + traceback("RuntimeError: [gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:4242", prefix="[rank2]: ")
            + child_failed(row(0, 1), row(2, 1))
        },
        truth={"cause": "rank-did-not-join", "rank": 1, "victims": [0, 2], "confidence": "medium"},
    ),
    "the watchdog's abort in torchrun's table is no cause": Scenario(
        {"out.log": "".join(watchdog(rank) for rank in range(4)) + child_failed(row(0, -6), row(1, -6))}, found=False, truth={"cause": None}
    ),
    "watchdogs of all ranks but one": Scenario(
        {"out.log": "".join(watchdog(rank) for rank in (0, 1, 3)) + "[rank2]: step 811 begins\n[rank0]: world_size=4\n"},
        truth={"cause": "rank-did-not-join", "rank": 2, "victims": [0, 1, 3]},
    ),
    "an excerpt of watchdogs: who is silent may only have been cut away": Scenario(
        {"out.log": watchdog(0) + watchdog(4) + watchdog(3)}, found=False, truth={"victims": [0, 3, 4], "rank": None}
    ),
    "watchdogs of all ranks, one behind": Scenario(
        {"out.log": "".join(watchdog(rank, seq=811 if rank != 5 else 810, enqueued=815 if rank != 5 else 812) for rank in range(8))},
        truth={"cause": "rank-did-not-join", "rank": 5},
    ),
    "watchdogs of all ranks, all alike": Scenario(
        {"out.log": "".join(watchdog(rank) for rank in range(8))}, found=False, truth={"victims": list(range(8))}
    ),
    "a watchdog, and the rank that had raised before": Scenario(
        {
            "out.log": traceback("RuntimeError: corrupt shard 12", prefix="[rank1]: ")
            + watchdog(0) + watchdog(2)
            + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        },
        truth={"rank": 1, "text": "RuntimeError: corrupt shard 12", "victims": [0, 2]},
    ),
    "monitored barrier names who is missing": Scenario(
        v2(traceback("RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms"), steps(2), steps(1)),
        truth={"rank": 2, "cause": "rank-did-not-join"},
    ),
    "rendezvous: nobody is to blame": Scenario(
        {
            "std.txt": "[E socket.cpp:793] [c10d] The client socket has timed out after 60s while trying to connect to (10.0.0.4, 29400).\n"
            + traceback("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.")
        },
        truth={"cause": "rendezvous-timeout", "rank": None, "confidence": "medium"},
    ),
    "a node that never joins is the one that says nothing": Scenario(
        {
            **v2(
                traceback("torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 3/4 clients joined."),
                traceback("torch.distributed.DistStoreError: wait timeout after 60000ms, keys: /default_pg/0//cpu//0/0"),
                "preparing data\n",
                traceback("torch.distributed.DistStoreError: wait timeout after 60000ms, keys: /default_pg/0//cpu//0/0"),
            ),
            "report.json": report("Failed", 1, 1, -15, 1),
        },
        truth={"cause": "rendezvous-timeout", "rank": 2, "node": "1"},
    ),
    "a launcher that never came": Scenario(
        v2(
            MET + traceback("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: "),
            "staging\n",
            MET + traceback("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: "),
        ),
        truth={"cause": "rendezvous-timeout", "rank": None, "node": "1"},
    ),
    "nobody met: who is to blame is not known": Scenario(
        v2(*[traceback("torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/4 clients joined.")] * 4),
        truth={"cause": "rendezvous-timeout", "rank": None, "node": None},
    ),
    "cancelled while one rank was a step behind": Scenario(
        {**v2(steps(9), steps(9), steps(8), steps(9)), "report.json": report("Canceled", -15, -15, -15, -15)},
        truth={"cause": "rank-did-not-join", "rank": 2, "node": "1", "confidence": "low"},
    ),
    "cancelled, and one rank still says that its peer went first": Scenario(
        {**v2(steps(9), steps(8), steps(9) + traceback(CLOSED), steps(9)), "report.json": report("Canceled", -15, -15, -15, -15)},
        truth={"cause": "rank-did-not-join", "rank": 1, "confidence": "low", "victims": [0, 2, 3]},
    ),
    "cancelled in step": Scenario(
        {**v2(*[steps(9)] * 4), "report.json": report("Canceled", -15, -15, -15, -15)},
        truth={"cause": "job-cancelled", "rank": None},
    ),
    "the time limit of a run in which one rank never began": Scenario(
        {
            **v2(steps(9), "loading\n", steps(9)),
            "report.json": report("Canceled", -15, -15, -15, error="JobTimeout: The job ran longer than its limit of 60 s"),
        },
        truth={"cause": "rank-did-not-join", "rank": 1, "confidence": "low"},
    ),
    "only rank 0 counts steps": Scenario(
        {
            **v2(steps(9), "ready\n", "ready\n", "ready\n"),
            "report.json": report("Canceled", -15, -15, -15, -15, error="JobTimeout: The job ran longer than its limit of 60 s"),
        },
        truth={"cause": "job-timeout", "rank": None},
    ),
    "one rank of each node counts steps": Scenario(
        {**v2(steps(9), "ready\n", steps(9), "ready\n"), "report.json": report("Canceled", -15, -15, -15, -15)},
        truth={"cause": "job-cancelled", "rank": None},
    ),
    "an exception before the cancellation is what was cancelled for": Scenario(
        {
            **v2(steps(9), steps(9) + traceback("ValueError: shard 3"), steps(9)),
            "report.json": report("Canceled", -15, -15, -15),
        },
        truth={"cause": "python-exception", "rank": 1},
    ),
}  # fmt: skip
