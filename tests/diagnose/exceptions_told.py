"""Exceptions: whose, and which of several."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from logtexts import CLOSED, SHUT, Scenario, steps, traceback, v2

SCENARIOS: dict[str, Scenario] = {
    "one rank raises, the others lose their peer": Scenario(
        v2(
            steps(5) + traceback(CLOSED),
            steps(5) + traceback(CLOSED),
            steps(5) + traceback("ValueError: label 17 out of range"),
            steps(5) + traceback(CLOSED),
        ),
        truth={
            "cause": "python-exception", "rank": 2, "victims": [0, 1, 3], "confidence": "high", "line": 13,
            "file": "user_logs/std_log_process_02.txt",
            "text": "ValueError: label 17 out of range",
            "source": {"file": "/code/train.py", "line": 41, "function": "main"},
        },
    ),
    "v1 driver logs": Scenario(
        {
            "azureml-logs/70_driver_log_0.txt": "This is an MPI job. Rank:0\n" + steps(3) + traceback(SHUT),
            "azureml-logs/70_driver_log_1.txt": "This is an MPI job. Rank:1\n"
            + steps(3)
            + traceback("FileNotFoundError: [Errno 2] No such file or directory: '/data/x.rec'"),
        },
        truth={"cause": "file-missing", "rank": 1, "victims": [0]},
    ),
    "two exceptions, told apart by the clock": Scenario(
        v2(
            "2024-02-01 10:00:09,120 ERROR here it ends\n" + traceback("IndexError: list index out of range"),
            "2024-02-01 10:00:01,120 ERROR here it ends\n" + traceback("KeyError: 'weight'"),
        ),
        truth={"cause": "python-exception", "rank": 1, "text": "KeyError: 'weight'", "confidence": "high"},
    ),
    "two exceptions without a clock": Scenario(
        v2(traceback("IndexError: list index out of range"), steps(2) + traceback("torch.cuda.OutOfMemoryError: CUDA out of memory.")),
        truth={"cause": "cuda-out-of-memory", "rank": 1, "confidence": "medium"},
    ),
    "chained exceptions: the root is named": Scenario(
        v2(
            traceback("KeyError: 'blocks.0.weight'", line=7)
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + traceback("RuntimeError: could not build the model", line=88)
        ),
        truth={"text": "KeyError: 'blocks.0.weight'", "rank": 0, "source": {"file": "/code/train.py", "line": 7, "function": "main"}},
    ),
    "a data loader worker's own exception": Scenario(
        v2(
            steps(2)
            + traceback("ValueError: Caught ValueError in DataLoader worker process 3.")
            + traceback("ValueError: image 0041.png has 2 channels", line=12).replace("Traceback", "Original Traceback", 1)
        ),
        truth={"text": "ValueError: image 0041.png has 2 channels", "source": {"file": "/code/train.py", "line": 12, "function": "main"}},
    ),
    "prefixed ranks in one captured log": Scenario(
        {
            "out.log": traceback(CLOSED, prefix="[rank0]: ")
            + traceback("AssertionError: shapes differ", prefix="[rank3]: ")
            + traceback(CLOSED, prefix="[rank1]: ")
        },
        truth={"rank": 3, "cause": "python-exception", "victims": [0, 1]},
    ),
    "interleaved tracebacks of mpirun --tag-output": Scenario(
        {
            "mpi_log.txt": "".join(
                a + b
                for a, b in zip(
                    traceback(SHUT, prefix="[1,0]<stderr>:", library=False).splitlines(keepends=True),
                    traceback("ZeroDivisionError: division by zero", prefix="[1,5]<stderr>:", library=False).splitlines(keepends=True),
                    strict=True,
                )
            )
        },
        truth={"rank": 5, "text": "ZeroDivisionError: division by zero", "victims": [0]},
    ),
    "a second exception while the interpreter goes down": Scenario(
        v2(
            traceback("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x2)")
            + "Exception ignored in atexit callback: <function clean_up at 0x7fc7fa34f7f0>\n" + traceback("MemoryError")
        ),
        truth={"cause": "python-exception"},
    ),
    "a warning about a library is no cause": Scenario(
        v2(
            "2024-02-01 10:00:00.1: W tensorflow/stream_executor/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; "
            "dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\n" + steps(3)
            + traceback("ValueError: no data")
        ),
        truth={"cause": "python-exception"},
    ),
    "all ranks miss the same package": Scenario(
        v2(*[traceback("ModuleNotFoundError: No module named 'apex'")] * 4),
        truth={"cause": "missing-module", "rank": None, "confidence": "high"},
    ),
    "a healthy run": Scenario(v2(steps(50), steps(50)), found=False, truth={"fatal": False, "victims": []}),
    "windows line ends and colours": Scenario(
        v2(("\x1b[31m" + traceback("ValueError: red") + "\x1b[0m").replace("\n", "\r\n")), truth={"rank": 0, "text": "ValueError: red"}
    ),
    "a progress bar hides the line": Scenario(
        v2("".join(f"\r{each}%|####| {each}/100" for each in range(100)) + "\rtorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"),
        truth={"cause": "cuda-out-of-memory", "line": 1},
    ),
    "torchrun's error file": Scenario(
        {
            "torchelastic/attempt_0/1/error.json": '{"message": {"message": "ValueError: bad shard", "extraInfo": {"py_callstack": '
            '"Traceback (most recent call last):\\n  File \\"/code/train.py\\", line 5, in main\\n    run()\\nValueError: bad shard\\n", "timestamp": "1706781605"}}}'
        },
        truth={"rank": 1, "text": "ValueError: bad shard", "source": {"file": "/code/train.py", "line": 5, "function": "main"}},
    ),
    "a handled exception long before": Scenario(
        v2(
            traceback("ConnectionError: could not log metrics, going on") + steps(900)
            + traceback("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
        ),
        truth={"cause": "cuda-out-of-memory"},
    ),
    "an exception lived through, told at the end": Scenario(
        v2(traceback("ValueError: caught and logged") + steps(3000) + traceback("KeyError: 'last'")),
        truth={"text": "KeyError: 'last'"},
    ),
}  # fmt: skip
