"""Ends of programs in other languages, and stacks and dumps of memory below an end, however long."""
# ruff: noqa: E501 - lines of logs are as long as they are

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


GOROUTINES = (
    "\ngoroutine 12 [running]:\nexample.org/ps.(*Server).Push(0xc000, 0x12)\n\t/src/ps/server.go:174 +0x10c\n" * 40
)
MAP = (
    "======= Backtrace: =========\n/lib/libc.so.6(cfree+0x4c)[0x7f5bc6a0753c]\n======= Memory map: ========\n"
    + "7f5b7be2b000-7f5b7be2c000 rw-p 00274000 08:03 428905    /usr/lib/libicui18n.so.58\n" * 180
)
ALLOCATED = "2019-02-13 09:10:34.025874: I tensorflow/core/common_runtime/bfc_allocator.cc:641] 1 Chunks of size 4096 totalling 4.0KiB\n"
ASKED = (
    "Traceback (most recent call last):\n{asks}KeyError: 'walker'\n\nDuring handling of the above exception, another exception"
    ' occurred:\n\nTraceback (most recent call last):\n  File "/src/learn.py", line 9, in main\n    trainer_of(name)\n'
    "{instead}{end}"
)
ASKS = '  File "/src/control.py", line 30, in trainer_of\n    return self.trainers[name]\n'
INSTEAD = '  File "/src/control.py", line 32, in trainer_of\n    made = make(name)\n'
DEEPER = '  File "/src/make.py", line 3, in make\n    return kind.value\n'


@for_each(
    "text, cause, named",
    [
        (f"PS started\nfatal error: concurrent map iteration and map write\n{GOROUTINES}", "native-fatal-error", "concurrent map"),
        (f"*** Error in `python': free(): invalid pointer: 0x000056233be111c8 ***\n{MAP}Aborted (core dumped)\n", "heap-corrupted", "free()"),
        ("Unhandled Exception: System.InvalidOperationException: no attr named 'paddings'\n   at Demo.Main(String[] args)\n",
         "native-fatal-error", "paddings"),
        ("Unhandled exception at 0x00007FFB in train.exe: Microsoft C++ exception: c10::Error\n", "native-fatal-error", "c10::Error"),
        ("java.lang.UnsupportedOperationException\n    at com.example.Map.put(Map.java:33)\n", "bare-exception", "UnsupportedOperation"),
        ("Uncaught (in promise) Error: Failed to compile fragment shader.\n    at t.program (tf.min.js:17)\n", "bare-exception", "fragment shader"),
        ("(node:43) UnhandledPromiseRejectionWarning: Error: Invalid TF_Status: 3\n    at load (backend.js:2)\n", "bare-exception", "TF_Status"),
        ("/src/test.cc:12: Failure\nExpected: a\n[  FAILED  ] Conv.Forward (0 ms)\n", "logged-error", "test.cc:12"),
        ("2020-05-05 12:00:00.0 [E:onnxruntime:, executor.cc:183 Execute] Non-zero status code of Gather\n", "logged-error", "Gather"),
        ("Training...\nAbort trap: 6\n", "aborted", "Abort trap"),
        (('time="2019-05-27T14:05:25Z" level=info msg="Archiving completed"\ntime="2019-05-27T14:05:25Z" level=error msg="No such container: x"\n'
         'time="2019-05-27T14:05:25Z" level=info msg="Alloc=1"\ntime="2019-05-27T14:05:25Z" level=fatal msg="exit status 2"\n'), "logged-error", "No such container"),
        ('{"level":"error","msg":"if kind is a CRD, install it"}\n{"level":"error","msg":"unable to register controllers"}\n', "logged-error", "CRD"),
        ("2019/01/04 21:41:19 controller.AddToManager(mgr)\n2019/01/04 21:41:19 no matches for kind \"PyTorchJob\" in version \"v1\"\n", "logged-error", "PyTorchJob"),
        ("ModuleNotFoundError: No module named 'numpy.core'\n(2, 2016)\ninfer_shape error. Arguments:\n" + traceback("ValueError: Shape inconsistent"),
         "python-exception", "Shape inconsistent"),
        ("nvcc fatal   : 's': expected a number\nCMake Error at a.cmake:202 (message):\n  Error generating\n\nmake: *** [all] Error 2\n",
         "logged-error", "expected a number"),
        ("88: unknown file: Failure\n88: C++ exception with description \"null not valid\" thrown in the test body.\n\t 88 - t (Failed)\nErrors while running CTest\n",
         "logged-error", "null not valid"),
        ('Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    g()\n RuntimeError:\n        An attempt has been made to start a new process before the\n',
         "main-without-guard", "An attempt"),
        ("[libprotobuf ERROR text_format.cc:307] Error parsing: no field named 'foo'.\nF0101 12:00:00.000 1 upgrade_proto.cpp:90] Check failed: ReadProto\n",
         "native-fatal-error", "no field named"),
        (traceback("chainer.utils.type_check.InvalidType: \nInvalid operation is performed in: Concat"), "python-exception", "Concat"),
        ("60000/60000 [====] - 9s\nException raised: \n `handle` is not available outside the replica context\n", "logged-error", "replica context"),
        ("[CRITICAL 2017-05-09 17:00:01,554 layers.py:3023] Unknown input layer 'decoder'\n" + traceback("Exception"), "logged-error", "Unknown input layer"),
        ("[10/06/2019-21:16:15] [E] [TRT] Parameter check failed at: Network.cpp\nSegmentation fault (core dumped)\n", "segmentation-fault", "Parameter check"),
        ("RuntimeError: \nThe size of tensor a must match (infer_size at ExpandUtils.cpp:22)\nframe #0: c10::Error::Error() + 135 (0x11 in libc10.so)\n"
         "<omitting python frames>\n:\noperation failed in interpreter:\n" + "/env/lib/python3.6/asyncio/events.py(145): _run\n" * 60, "bare-exception", "must match"),
        ("Error: java.lang.IllegalArgumentException: Wrong FS: hdfs, expected: file:/// at \n" + "org.apache.FileSystem.checkPath(FileSystem.java:669) at \n" * 60,
         "bare-exception", "Wrong FS"),
        ("[Unhandled promise rejection: TypeError: Network request failed]\n- a.js:97:22 in onerror\n", "bare-exception", "Network request"),
        ("engine.js:487 Uncaught (in promise) Error: Error running Step: no kernel\n  run\t@\tengine.js:48\n", "bare-exception", "no kernel"),
        ("1. Unhandled ai.djl.engine.EngineException\n   MXNet engine call failed: Type inconsistent\n\n     A.java: 18  a.B/c\n", "bare-exception", "Type inconsistent"),
        (("CUBLAS_STATUS_SUCCESS (14 vs. 0)  CUBLAS_STATUS_INTERNAL_ERROR\n*** Check failure stack trace: ***\n\nProgram received signal SIGABRT, Aborted.\n"
         "56  ../nptl/raise.c: No such file or directory.\n"), "native-fatal-error", "INTERNAL_ERROR"),
        (("(pid=raylet, ip=10.0.0.1) F0505 18:21:58.604787  7485 node_manager.cc:3094]  Check failed: node_info no GCS info\n"
         "(pid=raylet, ip=10.0.0.1) *** Check failure stack trace: ***\n(pid=7, ip=10.0.0.1) E0505 18:21:59.5  77 core_worker.cc:652] Raylet failed.\n"),
         "native-fatal-error", "no GCS info"),
        ("E   KeyError: 'f1_score'\n\nt.py:724: KeyError\n----- Captured stdout call -----\nPredicting 11/10\n", "logged-error", "f1_score"),
        ("dyld: Symbol not found: _f\n  Referenced from: /x.so\n\nAbort trap: 6\n", "library-mismatch", "_f"),
        (" Error reported to Coordinator: <type 'exceptions.IndexError'>, list index out of range\n", "python-exception", "out of range"),
        ("digits.errors.InferenceError:\n  torch task failed with error message -\n  /t/DataParallelTable.lua:374:\n  Model was serialized on 2 GPUs\n",
         "bare-exception", "serialized on 2"),
        ("| Training model 6 |\nout of memory\n", "logged-error", "out of memory"),
        ("[12345.678] Out of memory: Kill process 123 (python) score 900 or sacrifice child\n", "host-out-of-memory", "Kill process 123"),
        ("dyld: Library not loaded: @rpath/libcudart.9.0.dylib\n  Reason: image not found\nTrace/BPT trap: 5\n", "library-mismatch", "libcudart"),
        ("* thread #1, queue = 'main', stop reason = EXC_BAD_ACCESS (code=1, address=0x0)\n", "segmentation-fault", "EXC_BAD_ACCESS"),
        ("curl: (7) Failed to connect to localhost port 8080: Connection refused\n", "connection-refused", "8080"),
        ("src/index.ts:12:5 - error TS2304: Cannot find name 'foo'.\n\nFound 1 error.\n", "logged-error", "TS2304"),
        ("ld: library not found for -lx\nclang: error: linker command failed with exit code 1\n", "logged-error", "-lx"),
        ("digits: ERROR: Train: image.lua:9: bad argument #3\n" + "digits: WARNING: Train output: [C]: in f\n" * 24
         + "digits: ERROR: Train Model task failed with error code 1\n", "logged-error", "bad argument"),
        ("03-26 09:32:08 [FAIL] /lua/threads.lua:264:\n[thread 4 callback] /d/data.lua:326: not enough memory\n", "logged-error", "not enough memory"),
        ("T = RNG]: Assertion `px != 0' failed.\n\nProgram received signal SIGABRT, Aborted.\n#0  0x0 in raise ()\n", "native-fatal-error", "px != 0"),
        ("Thread 1 \"python\" received signal SIGSEGV, Segmentation fault.\n" + "PyEval_EvalFrameEx at ceval.c\n" * 200, "segmentation-fault", "SIGSEGV"),
        (traceback("cv2.error: OpenCV(4.3) a.cpp:881: error: (-2:Unspecified error) in function 'init'\n> Failed to initialize: shape"),
         "python-exception", "Failed to initialize"),
        ("#9 [ 6/12] RUN pip install x\n------\nexecutor failed running [/bin/sh -c pip install x]: exit code: 127\n", "image-step-failed", "exit code: 127"),
        ("\ufeffDllNotFoundException: Unable to load DLL 'x'\n  at A.B () [0x0]\n", "bare-exception", "Unable to load"),
        ("t/meson.build:7:0: ERROR: Unknown variable\n\nA full log can be found at /b/meson-logs/meson-log.txt\n", "logged-error", "Unknown variable"),
        ("The following tests FAILED:\n\t 56 - SVMTest (Failed)\nErrors while running CTest\n", "logged-error", "56 - SVMTest"),
        ("E   ValueError: no axis\n\nt.py:3: ValueError\n=== 2 failed, 1 passed in 11.56 seconds ===\n", "logged-error", "no axis"),
        ("ERROR:ignite.engine:Engine run is terminating due to exception: no 'net' in it.\nINFO:ignite.engine:saved\n", "logged-error", "no 'net'"),
        (">>> import neon\nERROR: Version information not found.  Build it.\n    From the top: 'make'\n(neon) mac:neon user$ \n", "logged-error", "Version"),
        ("2020-01-30T20:23:13.10Z ##[error]Bash exited with code '1'.\n", "logged-error", "Bash exited"),
        ("/usr/bin/ld: a.o: in function `f':\nd.cpp:4: undefined reference to `g'\n" * 8 + "collect2: error: ld returned 1 exit status\n", "logged-error", "undefined"),
        ("uncaught (in promise) Error: Size must be divisible\n    at e (u.ts:1)\n", "bare-exception", "divisible"),
        ("[warn]: TypeError: no len\n[fail]: something wrong: TypeError: no len\n    at f (i.js:4)\n", "logged-error", "no len"),
        ("/torch/bin/luajit: DoomException: No deathmatch\nstack traceback:\n\t[C]: in f\n", "native-fatal-error", "deathmatch"),
        ("/x/libiomp5.dylib: code signature in (/x) not valid for use in process\n\n[37] Failed to execute script main\n", "logged-error", "signature"),
        ("Starting\n\nError:\nIndex out of bounds: 0 <= i\n\nComing from:\n" + "- /s/array.cpp:at():642\n" * 12, "bare-exception", "out of bounds"),
        (": org.apache.spark.SparkException: Job aborted: Lost task 38.0: java.lang.X: port out of range\n\tat a.B.c(B.java:1)\n", "bare-exception", "port out"),
        ("Py4JJavaError: An error occurred while calling fit.\n: org.apache.spark.SparkException: Stage failed.\njava.lang.ClassCastException\n\n\tat a.B.c(B.java:1)\n",
         "bare-exception", "ClassCast"),
        ("6: F0411 16:26:35.131664 29887 Function.h:41] Cannot get key begin_pad\n6: *** Check failure stack trace: ***\n6:     @  0x8c  Fail()\n",
         "native-fatal-error", "begin_pad"),
        ("[TensorRT] ERROR: b.cpp (86) - Assertion Error in check: 0\n" + traceback("AttributeError: 'NoneType' object has no attribute 'run'"),
         "logged-error", "Assertion Error"),
        ("Error: 'NoneType' object has no attribute 'run'\n" + traceback("AttributeError: 'NoneType' object has no attribute 'run'"),
         "python-exception", "NoneType"),
        ("json.h:561:57: error: 'any' does not name a type\n" + "[ 22%] Building C object b.c.o\n" * 60 + "make: *** [all] Error 2\n",
         "logged-error", "does not name"),
        ("This step is in Error state with this message: failed to save outputs\n", "logged-error", "save outputs"),
        ("Your session crashed after using all available RAM.\n", "host-out-of-memory", "available RAM"),
        ("\u2718 Can't find a model at path\nen_core_web_sm\n", "logged-error", "find a model"),
        ("onnxruntime.state.Fail: [ONNXRuntimeError] : 1 : FAIL : Load model failed\n", "logged-error", "Load model"),
        ("E0508 12:00:00.1 1 repository.cc:1155] failed to load 'm' version 1: Internal: x\n| m | 1 | UNAVAILABLE: Internal |\n", "native-fatal-error", "'m' version 1"),
        (("[ERROR 2018-01-23 23:42:58 args] Failed to process arguments\nError in operator reshape0: [23:42:58] src/m.h:157: Check failed: a == b\n"
         "Stack trace returned 1 entries:\n[bt] (0) libmxnet.so dmlc::StackTrace()\n\n$ \n"), "native-fatal-error", "Check failed"),
        (("ERROR: [Conversion] - (Layer 0) [Scale]: at least 4 dimensions are required\nDEBUG: [Conversion] - shape: []\n"
         "ERROR: [Conversion] - Layer 0 failed validation\nERROR: [Conversion] - Network validation failed.\n"), "logged-error", "at least 4"),
        ("ctc.errors.CTCError: CTC_STATUS_EXECUTION_FAILED: b'execution failed'\n", "bare-exception", "CTC_STATUS"),
        ('Warning  Failed  52m (x11 over 54m)  kubelet, node-1  Error: configmaps "config" not found\nNormal   Pulled  4m  kubelet\n',
         "pod-config-missing", "configmaps"),
        ("sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) could not connect to server: Connection refused\n",
         "connection-refused", "psycopg2"),
    ],
)  # fmt: skip
def test_an_end_is_named_with_its_reason(text: str, cause: str, named: str, tmp_path: Path) -> None:
    verdict = verdict_of(text, tmp_path)
    assert (verdict.cause, named in str(verdict.text)) == (cause, True)


def test_an_allocation_that_tensorflow_sums_up_to_the_logs_end_is_a_cause_and_no_warning(tmp_path: Path) -> None:
    failed = "2019-02-13 09:10:34.02: W tensorflow/core/common_runtime/bfc_allocator.cc:267] Allocator (GPU_0_bfc) ran out of memory.  Current allocation summary follows.\n"
    assert verdict_of(failed + ALLOCATED * 150, tmp_path).cause == "cuda-out-of-memory"
    assert not verdict_of(failed + ALLOCATED * 150 + steps(20), tmp_path).found


def test_the_heap_of_an_executor_that_spark_lost_is_the_cause(tmp_path: Path) -> None:
    task = "19/03/26 14:09:22 WARN TaskSetManager: Lost task 0.0 in stage 8.0 (TID 1, h, executor 1): java.lang.OutOfMemoryError: Java heap space\n"
    stack = "\tat org.example.Sorter.sort(Sorter.java:1)\n" * 20
    lost = "19/03/26 14:09:23 ERROR TaskSchedulerImpl: Lost executor 1 on 10.0.0.1: \nThe executor with id 1 exited with exit code 52.\n"
    assert verdict_of(task + stack + lost, tmp_path).cause == "host-out-of-memory"


@for_each(
    "asks, instead, end, named",
    [
        # the function that asked made one instead, which failed deeper
        (ASKS, INSTEAD + DEEPER, "AttributeError: 'str' has no 'value'\n", "AttributeError"),
        # it raised itself
        (ASKS, INSTEAD, "ValueError: unknown walker\n", "KeyError"),
        # what was missing lay deeper
        (ASKS + DEEPER, INSTEAD + DEEPER, "AttributeError: 'str' has no 'value'\n", "KeyError"),
    ],
)
def test_a_missing_key_that_a_function_asked_for_gives_way_to_what_it_did_instead(
    asks: str, instead: str, end: str, named: str, tmp_path: Path
) -> None:
    verdict = verdict_of(ASKED.format(asks=asks, instead=instead, end=end), tmp_path)
    assert str(verdict.text).startswith(named)


def test_marks_of_a_collector_and_of_mpirun_within_a_line_hide_no_stall(tmp_path: Path) -> None:
    begin = "2020-01-15 22:4{}:33 UTC master.0 -- [1,0]<stderr>:"
    report = f"{begin}[[1,0]<stderr>:W[1,0]<stderr>: stall_inspector.cc: One or more tensors wait for remainder of ranks\n{begin}Stalled ranks:\n"
    log = "".join((report + begin + "0: [Allreduce]\n").replace("{}", str(at)) for at in range(3))
    assert verdict_of(log, tmp_path).cause == "rank-did-not-join"


def test_a_quoted_traceback_of_a_notebook_is_read_without_its_marks(tmp_path: Path) -> None:
    cell = f"> AttributeError{'Traceback (most recent call last)':>66}\n> <ipython-input-7-2f> in <module>\n>      39 x\n> ---> 41 fit(x)\n> \n"
    frame = "> ~/env/lib/python3.6/site-packages/k.py in fit(self)\n>      58 \n> ---> 60     self.optimizer.iterations\n>      61 \n> \n"
    verdict = verdict_of(f"{cell}{frame}> AttributeError: 'NoneType' object has no attribute 'iterations'\n", tmp_path)
    assert (verdict.cause, "iterations" in str(verdict.text)) == ("python-exception", True)


CHILD = """2018-06-13 20:31:59.41: W tensorflow/core/op_kernel.cc:1198] Failed precondition
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/tf/session.py", line 13, in _do_call
    return fn()
FailedPreconditionError: model.ckpt; Bad file descriptor

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{child}", line 14, in <module>
    run()
FailedPreconditionError: model.ckpt; Bad file descriptor
"""


@for_each("child, named", [("/src/export.py", "Bad file"), ("/src/workflow.py", "frozen.pb")])
def test_what_a_child_raised_right_above_its_parents_exception_is_the_cause(
    child: str, named: str, tmp_path: Path
) -> None:
    parent = traceback("FileNotFoundError: No such file or directory: 'frozen.pb'").replace(
        "/code/train.py", "/src/workflow.py"
    )
    assert named in str(verdict_of(CHILD.format(child=child) + parent, tmp_path).text)


def test_the_error_above_an_exception_on_nothing_is_shown_with_its_line(tmp_path: Path) -> None:
    none = "'NoneType' object has no attribute 'run'"
    log = f"start\n[TensorRT] ERROR: no such layer\nfailed: {none}\n" + traceback(f"AttributeError: {none}")
    verdict = verdict_of(log, tmp_path)
    assert (verdict.line, verdict.text) == (2, "[TensorRT] ERROR: no such layer")
