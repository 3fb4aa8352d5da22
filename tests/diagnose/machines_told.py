"""Memory, ports, networks, nodes."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from logtexts import CLOSED, Scenario, child_failed, row, steps, traceback, v2

SCENARIOS: dict[str, Scenario] = {
    "the kernel's words make it sure": Scenario(
        {
            "user_logs/std_log_process_00.txt": child_failed(row(2, -9)),
            "dmesg.txt": "[  81.2] Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB\n",
        },
        truth={"cause": "host-out-of-memory"},
    ),
    "the terminal goes away": Scenario(
        {
            "nohup.out": "W0920 09:10:41.194000 84933 torch/distributed/elastic/agent/server/api.py:719] Received 1 death signal, shutting down workers\n"
             "W0920 09:10:41.195000 84933 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 85005 closing signal SIGHUP\n"
            + traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 84933 got signal: 1")
        },
        truth={"cause": "hangup", "rank": None},
    ),
    "port in use, told before as a warning": Scenario(
        v2(
            "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
            + traceback("RuntimeError: The server socket has failed to listen on any local network address. (errno: 98 - Address already in use)"),
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [10.0.0.4]:29500 (errno: 111 - Connection refused).\n",
        ),
        truth={"cause": "port-in-use", "rank": 0},
    ),
    "a slow network and nothing else": Scenario(
        {"std.txt": "gpu1:55:90 [0] NCCL INFO NET/IB : No device found.\ngpu1:55:90 [0] NCCL INFO Using network Socket\n" + steps(5)},
        truth={"cause": "no-infiniband", "fatal": False, "confidence": "medium"},
    ),
    "a slow network beside the true cause": Scenario(
        v2("gpu1:55:90 [0] NCCL INFO Using network Socket\n" + steps(3) + traceback("MemoryError")),
        truth={"cause": "host-out-of-memory", "rank": 0},
    ),
    "NCCL says why just before the exception": Scenario(
        v2(
            "gpu1:55:90 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
            + traceback("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL version 2.14.3")
        ),
        truth={"cause": "memlock-limit", "rank": 0},
    ),
    "the agent is told to stop": Scenario(
        {
            "std.txt": steps(4)
            + "W0201 10:00:04.366000 71 torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down workers\n"
            "W0201 10:00:04.367000 71 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 72 closing signal SIGTERM\n"
        },
        truth={"cause": "terminated-from-outside", "rank": None},
    ),
    "pre-emption": Scenario(
        {
            "azureml-logs/executionlogs.txt": "[2024-02-01 10:00:00Z] Job failed. PreemptionError: Nodes of this job got pre-empted.\n",
            "user_logs/std_log_process_00.txt": steps(2) + traceback(CLOSED),
        },
        truth={"cause": "node-preempted", "rank": None, "victims": [0]},
    ),
    "a broken link points to its peer": Scenario(
        v2("gpu1:55:90 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<40212> with error 12, opcode 0, len 0, vendor err 129\n"
           + traceback("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, remote process exited or there was a network error")),
        truth={"cause": "infiniband-link", "node": "gpu1"},
    ),
    "a closed network between two nodes": Scenario(
        {
            "out.log": "gpu1:795:822 [0] include/socket.h:409 NCCL WARN Net : Connect to 10.0.0.9<54263> failed : No route to host\n"
            "gpu1:795:822 [0] NCCL INFO transport/net_socket.cc:316 -> 2\n"
            + traceback("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL version 2.14.3")
        },
        truth={"cause": "network-unreachable", "rank": None},
    ),
    "more processes than GPUs": Scenario(
        {
            "out.log": "gpu1:176:194 [0] init.cc:573 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1cb00000\n"
            + traceback("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, invalid usage, NCCL version 2.7.8")
        },
        truth={"cause": "duplicate-gpu", "rank": None, "node": None},
    ),
    "the same weak sign in several ranks blames none": Scenario(
        {
            "out.log": traceback("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, internal error", prefix="[rank1]: ")
            + traceback("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, internal error", prefix="[rank2]: ")
        },
        truth={"cause": "nccl-system-error", "rank": None, "confidence": "low"},
    ),
}  # fmt: skip
