"""Excerpts of notebooks, of pip, TensorFlow, gRPC and Theano: where the cause stands, and which of their words are none."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import LIB, steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


CELL = (
    "     23     return row\n---> 28 table = rows.filter(has_number)\n     29 table\n\n"
    "File /usr/local/lib/python3.10/dist-packages/imaging/files.py:254, in ImageFile.load(self)\n    252 else:\n"
    '--> 254     raise OSError(\n    255         "image file is truncated "\n    256         f"({count} bytes left)"\n'
)


def test_a_notebooks_traceback_that_is_cut_at_both_ends_shows_the_code_that_raises(tmp_path: Path) -> None:
    verdict = verdict_of(CELL, tmp_path)
    assert (verdict.cause, verdict.found) == ("traceback-cut-short", True)
    assert 'ImageFile.load: raise OSError( "image file is truncated "' in str(verdict.text)
    assert not verdict_of(steps(20) + CELL.replace("raise OSError(", "x = f("), tmp_path).found


def test_source_code_in_a_notebooks_traceback_is_no_message(tmp_path: Path) -> None:
    header = f"OSError{'Traceback (most recent call last)':>66}\nCell In[24], line 28\n"
    log = header + CELL.replace("rows.filter(has_number)", "open()  # Too many open files is an error")
    assert verdict_of(f"{log}\nOSError: image file is truncated (1 bytes left)\n", tmp_path).cause == "python-exception"


@for_each(
    "text, named",
    [
        # each line has the margin of the header
        (
            (
                "    ERROR: Complete output from command python setup.py egg_info:\n    ERROR: Traceback (most recent call last):\n"
                '      File "<string>", line 1, in <module>\n      File "/usr/lib/python3.7/tokenize.py", line 447, in open\n'
                "        buffer = _builtin_open(filename, 'rb')\n    FileNotFoundError: [Errno 2] No such file: 'setup.py'\n    ----\n"
            ),
            "FileNotFoundError",
        ),
        (
            (
                f" ValueError{'Traceback (most recent call last)':>66}\n /env/lib/python3.6/graph.py in element(obj)\n    3556   if x:\n"
                " -> 3557     raise ValueError(obj)\n\n ValueError: Tensor x is no element of this graph.\n"
            ),
            "no element of this graph",
        ),
        # the class begins with an underscore, and its message has several lines
        (
            traceback("grpc._channel._Rendezvous: <_Rendezvous of RPC that terminated with:")
            + '\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "Socket closed"\n>\n',
            "Socket closed",
        ),
        (
            traceback("tensorflow.errors_impl.InternalError: 2 root error(s) found.")
            + "  (0) Internal: Pooling needs NHWC\n\t [[node pool]]\n  (1) Internal: Pooling needs NHWC\n",
            "Pooling needs NHWC",
        ),
        (
            traceback("RuntimeError: The following operation failed in the TorchScript interpreter.")
            + "Traceback of TorchScript (most recent call last):\n    return ops.init(x)\n           ~~~~~~~~ <--- HERE\n"
            "RuntimeError: The runtime found no device.\n",
            "found no device",
        ),
        (traceback("MemoryError: Error allocating 531025920 bytes of device memory (out of memory)."), "device memory"),
    ],
)
def test_the_line_that_says_why_is_shown(text: str, named: str, tmp_path: Path) -> None:
    verdict = verdict_of(text, tmp_path)
    assert named in str(verdict.text)
    assert (verdict.cause == "cuda-out-of-memory") == (named == "device memory")


@for_each(
    "line",
    [
        " Number of MPI ranks:       32\n Error:       0.00762%",
        "Total size: 8994 Processed files: 90551 Permission denied: 16 Missing size: 48955",
        "7zr3ffl             m4@1.4.19+sigsegv build_system=autotools\nptpchf4                 libsigsegv@2.14",
        (
            "2021-10-06 15:57:04.287119: W external/org_tensorflow/tensorflow/stream_executor/platform/default/dso_loader.cc:64]"
            " Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file"
        ),
        "Warning:  fused kernel is unavailable. Using Python fallback.  Original ImportError was: ImportError('x')",
        "The model and loaded state dict do not match exactly\n\nsize mismatch for conv1.weight: copying a param with shape 3",
    ],
)
def test_words_that_tools_count_list_or_go_on_from_are_no_cause(line: str, tmp_path: Path) -> None:
    assert not verdict_of(f"{line}\n", tmp_path).found


def test_what_another_run_says_is_no_message_of_an_interrupt(tmp_path: Path) -> None:
    later = "Loads checkpoint\n\nsize mismatch for conv1.weight: copying a param\n\ndone\n"
    verdict = verdict_of(traceback("KeyboardInterrupt") + later + traceback("KeyboardInterrupt"), tmp_path)
    assert verdict.cause == "terminated-from-outside"


def test_an_interrupt_while_a_library_ran_is_one_whatever_stands_above(tmp_path: Path) -> None:
    inside = traceback("KeyboardInterrupt").replace(
        '"/code/train.py", line 90, in <module>', '"/env/lib/python3.9/x.py", line 9, in f'
    )
    verdict = verdict_of(f"Flash attention is missing, the default will be used\n{inside}", tmp_path)
    assert verdict.cause == "terminated-from-outside"


@for_each(
    "inner, exception, cause",
    [
        ("multiprocessing/reduction.py", "BrokenPipeError: [Errno 32] Broken pipe", "child-process-gone"),
        ("ray/_private/worker.py", "ray.exceptions.RayActorError: The actor died unexpectedly.", "ray-process-died"),
        ("torch/distributed/distributed_c10d.py", "RuntimeError: Connection reset by peer", None),
    ],
)
def test_a_process_of_its_own_that_a_program_lost_is_named(
    inner: str, exception: str, cause: str | None, tmp_path: Path
) -> None:
    log = traceback(exception).replace("torch/nn/modules/module.py", inner)
    verdict = verdict_of(log, tmp_path)
    assert (verdict.cause, verdict.fatal) == (cause, True)
    of_one_rank = "".join(f"[rank1]: {line}\n" for line in log.splitlines())
    assert not verdict_of(f"[rank0]: step 1 loss 0.1\n{of_one_rank}", tmp_path).found


@for_each(
    "text, named",
    [
        (traceback("cv2.error: OpenCV(4.4.0) /src/resize.cpp:39: error: (-215) !ssize.empty()"), "!ssize.empty()"),
        (traceback("google.api_core.exceptions.Forbidden: 403 GET no access"), "no access"),
        (f"error{'Traceback (most recent call last)':>66}\nCell In[4], line 5\n----> 5 f(x)\n\nerror: (-215) x.empty()\n", "x.empty()"),
        (("copy: unsupported type (q4 to f16)\n/src/cuda/cpy.cu:71: fatal error\n\nptrace: Operation not permitted.\nNo stack.\n"
         "Aborted (core dumped)\n"), "unsupported type"),
        (("model_load: error loading model: tensor a is not within the file\nmodel_from_file: failed to load model\n"
         "main: error: unable to load model\n"), "not within the file"),
        (traceback("httpx.ConnectError: [Errno 111] Connection refused"), "Connection refused"),
    ],
)  # fmt: skip
def test_exceptions_and_aborts_of_any_name_are_named(text: str, named: str, tmp_path: Path) -> None:
    verdict = verdict_of(text, tmp_path)
    assert (verdict.found, named in str(verdict.text)) == (True, True)
    assert verdict.cause != "traceback-cut-short"


def test_the_summary_of_paddles_launcher_does_not_say_why(tmp_path: Path) -> None:
    text = "LAUNCH ERROR 2026-06-16 10:11:25 Container failed !!!\nContainer rank 3 status failed cmd ['python'] code -15\n"
    verdict = verdict_of(text, tmp_path)
    assert (verdict.found, verdict.fatal, verdict.rank) == (False, True, 3)


def test_the_exception_of_a_task_of_rays_is_shown_whatever_stands_behind_its_class(tmp_path: Path) -> None:
    for task in ("RayTaskError(ValueError): ray::f() (pid=1)", "RayTaskError: ^[[36mray_f()^[[39m (pid=1, host=x)"):
        log = traceback(f'ray.exceptions.{task}\n  File "train.py", line 5, in f\n    g()\nValueError: wrong shape')
        verdict = verdict_of(log, tmp_path)
        assert (verdict.text, str(verdict.source)) == ("ValueError: wrong shape", "train.py:5 in f")


LINKER = "/usr/bin/ld: cannot find -l{}: No such file or directory\ncollect2: error: ld returned 1 exit status\n"


def test_what_a_linker_did_not_find_counts_where_a_build_stopped(tmp_path: Path) -> None:
    stopped = verdict_of(f"{LINKER.format('cudart')}ninja: build stopped: subcommand failed.\n", tmp_path)
    assert "cannot find -lcudart" in str(stopped.text)
    went_on = "[WARNING] async_io requires the dev libaio .so object\n" * 3
    assert not verdict_of(LINKER.format("aio") + went_on, tmp_path).found


def test_a_mere_line_after_which_an_excerpt_goes_on_is_no_cause(tmp_path: Path) -> None:
    line = "Could not import overrides: cannot import name 'Model' from 'config'\n"
    assert not verdict_of(line + "an option and its meaning\n" * 11, tmp_path).found
    assert verdict_of(line + "an option and its meaning\n" * 3, tmp_path).found


def test_an_error_of_an_ascend_npu_is_named_by_its_code(tmp_path: Path) -> None:
    code = "EI0005: The arguments for collective communication are inconsistent between ranks"
    log = traceback("RuntimeError: Preprocess failed. The details refer to 'Ascend Error Message'.")
    verdict = verdict_of(f"{log}\n{'-' * 52}\n- Ascend Error Message:\n{'-' * 52}\n{code}\n", tmp_path)
    assert (verdict.cause, verdict.text) == ("ascend-error", code)


def test_a_log_that_ends_within_a_chain_of_exceptions_shows_the_first(tmp_path: Path) -> None:
    first = traceback("urllib3.exceptions.LocationParseError: Failed to parse: http://your-server:port").replace(
        "<module>", "f"
    )
    within = (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.10/threading.py", line 9, in run\n    self.f()\n'
    )
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    log = f"Voice is not known. Using another instead.\nException in thread Thread-1:\n{first}{chained}{within}"
    assert "Failed to parse" in str(verdict_of(log, tmp_path).text)


FRAMES = '  File "/code/data.py", line 9, in load\n    return read(path)\n'


@for_each(
    "text, cause, named",
    [
        # A message that is a traceback of its own.
        (f"Traceback (most recent call last):\n{FRAMES}cv2.error: Traceback (most recent call last):\n{FRAMES}cv2.error: OpenCV(3.4) no rows\n",
         "python-exception", "no rows"),
        # Frames below their exception, and frames whose margin a collector of logs took off.
        (f"RuntimeError: no kernel for half\n\n{FRAMES}", "bare-exception", "no kernel"),
        (('2026-05-29T05:52:59.65+00:00 app[web.1]: File "/a/f.py", line 98, in g\n2026-05-29T05:52:59.65+00:00 app[web.1]: h()\n'
         "2026-05-29T05:52:59.65+00:00 app[web.1]: AttributeError: no attribute q\n"), "python-exception", "attribute q"),
        # The program prints the exception's words before a traceback whose end is missing.
        (f"Error: The padding must be same. Received: zero\nTraceback (most recent call last):\n{FRAMES}",
         "traceback-cut-short", "padding must be same"),
        ("Error in py_call_impl(callable, dots) : \n  AttributeError: no attribute 'predict'\n\nDetailed traceback: \n" + FRAMES * 3,
         "bare-exception", "no attribute 'predict'"),
        (steps(40) + "error: subprocess-exited-with-error\n\n× pip did not run successfully.\n│ exit code: 1\n",
         "package-not-built", "subprocess-exited"),
        ("    building 'tree' extension\n    error: Microsoft Visual C++ 14.0 is required.\n", "environment-build", "Visual C++"),
        ("c++: internal compiler error: Killed (program cc1plus)\nmake[2]: *** [a.o] Error 4\n",
         "signal-9-likely-out-of-memory", "cc1plus"),
        ("OMP: Error #15: Initializing libiomp5.dylib, but found it already initialized.\nOMP: Hint This is unsafe.\nAborted\n",
         "openmp-refused", "Error #15"),
        (">       assert count == 2526\nE       assert 2544 == 2526\n\ntests/test_x.py:192: AssertionError\n", "logged-error", "2544"),
        ('Error: A JNI error has occurred\nException in thread "main" java.lang.NoClassDefFoundError: Pool\n\tat a.B(C.java:1)\n',
         "native-fatal-error", "NoClassDefFoundError"),
        ("Job ID: 7\nState: TIMEOUT\nNodes: 1\n", "job-timeout", "TIMEOUT"),
        ("            raise ValueError('same shape')\nE           ValueError: all need the same shape\n", "logged-error", "same shape"),
        ("make (e=2): The system cannot find the file specified.\nmingw32-make: *** [steps] Error 2\n", "logged-error", "cannot find"),
    ],
)  # fmt: skip
def test_excerpts_show_what_failed(text: str, cause: str, named: str, tmp_path: Path) -> None:
    verdict = verdict_of(text, tmp_path)
    assert (verdict.cause, named in str(verdict.text)) == (cause, True)


def test_the_last_request_that_a_server_failed_is_a_failure_if_it_served_none(tmp_path: Path) -> None:
    raised = traceback("AttributeError: no attribute 'is_xhr'").replace("<module>", "wsgi_app")
    log = f'[2026-12-20 21:40:48,809] ERROR in app: Exception on /message [POST]\n{raised}127.0.0.1 - - "POST /message" 500 -\n'
    assert "is_xhr" in str(verdict_of(log, tmp_path).text)
    assert not verdict_of(f'127.0.0.1 - - "GET / HTTP/1.1" 200 -\n{log}', tmp_path).found


def test_a_warning_far_above_a_childs_end_is_not_its_cause(tmp_path: Path) -> None:
    warned = "[!] WARNING: Specified cache directory /tmp/x does not exist\n"
    ended = traceback("subprocess.CalledProcessError: Command '['upscale']' returned non-zero exit status 1.")
    for between, found in (("frame\n" * 60, False), ("frame\n" * 3, True)):
        assert verdict_of(warned + between + ended, tmp_path).found == found


@for_each("status, code", [
    (3221225477, "segmentation-fault"), (-1073741819, "segmentation-fault"), (3221226505, "aborted"),
    (3221225501, "illegal-instruction"),
])  # fmt: skip
def test_an_exit_status_of_windows_tells_how_a_child_ended(status: int, code: str, tmp_path: Path) -> None:
    ended = f"subprocess.CalledProcessError: Command '['upscale.exe']' returned non-zero exit status {status}."
    assert verdict_of(traceback(ended), tmp_path).cause == code


def test_exceptions_of_a_group_and_killed_tests_are_named(tmp_path: Path) -> None:
    group = "".join(f"  | {line}\n" for line in traceback("registry.UnsupportedUri: no such store").splitlines())
    assert verdict_of(group, tmp_path).text == "registry.UnsupportedUri: no such store"
    assert verdict_of("tests/test_x.py::test_a[2] Killed\n", tmp_path).cause == "signal-9-likely-out-of-memory"
    assert not verdict_of("error: XDG_RUNTIME_DIR not set in the environment.\nVulkan 1.2\n", tmp_path).found


VLLM = "ERROR 04-21 00:33:55 [core.py:387] "


@for_each(
    "text, cause, named",
    [
        (steps(40) + "alloc: allocating 39979.48 MiB on device 0: cudaMalloc failed: out of memory\nmodel_load: error loading model: no buffer\n"
         + "load: failed\n" * 5 + "main: exiting due to model loading error\n", "cuda-out-of-memory", "cudaMalloc"),
        ("Websocket connection closed (worker: a)\n" + traceback("RuntimeError: Websocket connection closed and no new one made."),
         "peer-gone", "no new one"),
        ("(raylet) error: unexpected argument '--node-ip-address' found\n(raylet)   tip: a similar argument exists\n",
         "wrong-arguments", "--node-ip-address"),
        ("E0625 15:46:49.9       1 main.go:173] error starting plugins: invalid device discovery strategy\nStream closed EOF for x\n",
         "logged-error", "discovery strategy"),
        ("Using Python 3.11\n  × No solution found when resolving dependencies:\n  ╰─▶ Because only torch<=2.5\n" + "      is available\n" * 15,
         "environment-build", "No solution"),
        ("Uploaded a.jsonl\n[organization=user-x] Error: Billing hard limit has been reached (HTTP status code: 400)\n",
         "logged-error", "Billing"),
        (steps(40) + "ROCm error: unspecified launch failure\n  current device: 0\n/src/ggml-cuda.cu:99: ROCm error\n"
         + "[New LWP 24825]\n" * 30 + "30\t../sysdeps/wait4.c: No such file or directory.\n#1  0x00007 in abort ()\n",
         "gpu-illegal-access", "launch failure"),
        # A logger's prefix and words before the header, and the prefix alone before the frames.
        (f"{VLLM}EngineCore hit an exception: Traceback (most recent call last):\n"
         + "".join(f"{VLLM}{line}\n" for line in traceback("RuntimeError: Expect rule name").splitlines()[1:])
         + "CRITICAL 04-21 00:33:55 [client.py:359] Got fatal signal from workers, shutting down.\nKilled\n",
         "python-exception", "Expect rule name"),
        # What a later exception of the chain means, with its words.
        (traceback("binascii.Error: Incorrect padding").replace('"/code/train.py", line 90, in <module>', f'"{LIB}/conf.py", line 9, in read')
         + "\nDuring handling of the above exception, another exception occurred:\n\n"
         + traceback("FileNotFoundError: no zero2.json"), "file-missing", "zero2.json"),
    ],
)  # fmt: skip
def test_programs_that_stop_without_an_exception_of_their_own_show_why(
    text: str, cause: str, named: str, tmp_path: Path
) -> None:
    verdict = verdict_of(text, tmp_path)
    assert (verdict.cause, named in str(verdict.text)) == (cause, True)


def test_the_exception_that_a_pool_passes_on_is_shown_in_a_notebook(tmp_path: Path) -> None:
    header = f"{'-' * 75}\nRemoteTraceback{'Traceback (most recent call last)':>60}\nRemoteTraceback: \n"
    inside = traceback("TypeError: f() lacks 'labels'")
    cause = "The above exception was the direct cause of the following exception:\n\n"
    outer = f"TypeError{'Traceback (most recent call last)':>66}\nCell In[4], line 5\n----> 5 f(x)\n\nTypeError: f() lacks 'labels'\n"
    assert verdict_of(f'{header}"""\n{inside}"""\n\n{cause}{outer}', tmp_path).text == "TypeError: f() lacks 'labels'"


def test_a_report_of_desynchronised_ranks_names_who_did_not_join(tmp_path: Path) -> None:
    report = (
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=4) ran for 8097 ms.\n"
        " - To our best knowledge, the lagging ranks that caused the desync are:\n"
        "     [1] finished collective #2, but didn't join collective #3 (count from 1)\n"
    )
    verdict = verdict_of(report, tmp_path)
    assert (verdict.cause, verdict.rank) == ("rank-did-not-join", 1)


@for_each(
    "text, cause",
    [
        (traceback("OSError: [Errno 28] No space left on device: '/tmp/x'")
         + "The command '/bin/bash -c pip install x' returned a non-zero code: 2\n", "disk-full"),
        ("git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n", "permission-denied"),
        ("'rm' is not recognized as an internal or external command,\noperable program or batch file.\n"
         + traceback("Exception: '' missing, try downloading"), "python-exception"),
    ],
)  # fmt: skip
def test_what_stands_beside_a_cause_is_not_named_before_it(text: str, cause: str, tmp_path: Path) -> None:
    assert verdict_of(text, tmp_path).cause == cause


@for_each(
    "text, cause, named",
    [
        ("Exception has occurred: AttributeError\n'NoneType' object has no attribute 'detach'\n" + FRAMES, "bare-exception", "detach"),
        (("    gcc -c x.c\n\xa0 \xa0 _configtest.c:2:10: fatal error: 'mpi.h' file not found\n    1 error generated.\n"
         "ERROR: Command errored out with exit status 1: /bin/python\n"), "logged-error", "mpi.h"),
        ("gpu_ops.obj : error LNK2001: unresolved external symbol f\nops.pyd : fatal error LNK1120: 1 unresolved\n", "logged-error", "symbol f"),
        ("a.o: In function `g':\na.cpp:(.text+0xb18): undefined reference to `GOMP'\ncollect2: error: ld returned 1 exit status\n",
         "logged-error", "GOMP"),
        ("F1113 09:48:49.763934 82176 Decode.cpp:655 Exception in thread 0\n", "native-fatal-error", "thread 0"),
        ("Load image\nOpenCV Error: Assertion failed (0 <= index) in forward\n", "logged-error", "Assertion failed"),
        ("> d(torch_zeros(1))\n> Error in d(torch_zeros(1)) : could not find function\n", "logged-error", "could not find"),
        (traceback("**OverflowError: cannot convert float infinity**"), "python-exception", "OverflowError: cannot"),
        ("E           runner.ExecutionError: \nE           -------------\nE           TypeError: abstract class X\n\nrun.py:188: ExecutionError\n",
         "logged-error", "abstract class X"),
    ],
)  # fmt: skip
def test_compilers_debuggers_and_reports_show_their_reason(text: str, cause: str, named: str, tmp_path: Path) -> None:
    verdict = verdict_of(text, tmp_path)
    assert (verdict.cause, named in str(verdict.text)) == (cause, True)
