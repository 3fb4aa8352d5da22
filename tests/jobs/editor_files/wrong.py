"""Uses of the model that are wrong, one a line; a type checker finds each one below the first assignment."""

from jobs import (
    Build,
    Code,
    Component,
    Cron,
    Environment,
    Identity,
    Input,
    Job,
    Limits,
    Mpi,
    Objective,
    Output,
    PerProcess,
    Pipeline,
    Port,
    QueueSettings,
    Schedule,
    Service,
    Step,
    Sweep,
    SweepLimits,
    TensorFlow,
    TorchRun,
)

least = Job(command="python train.py", environment="acpt-pytorch-2.8-cuda12.6")
a01 = Job(command="x")
a02 = Job(environment="e")
a03 = Job("x", "e")
a04 = Job(command="x", environment="e", node_count=2)
a05 = Job(command=["x"], environment="e")
a06 = Job(command="x", environment="e", nodes=2.5)
a07 = Job(command="x", environment="e", code=3)
a08 = Job(command="x", environment="e", launcher="torchrun")
a09 = Job(command="x", environment="e", limits=3600)
a10 = Job(command="x", environment="e", limits=Limits(timeout=1.5))
a11 = Job(command="x", environment="e", on_edit="cancle")
a12 = Job(command="x", environment="e", wait=True)
a13 = Job(command="x", environment="e", outputs={"ckpt": "folder"})
a14 = Job(command="x", environment="e", outputs={"ckpt": Output(mode="ro_mount")})
a15 = Job(command="x", environment="e", inputs={"d": Input(mode="mounted")})
a16 = Job(command="x", environment="e", inputs=["d"])
a17 = Job(command="x", environment="e", tags={"team": 3})
a18 = Job(command="x", environment="e", compute=Environment(image="i:1"))
a19 = Job(command="x", environment="e", queue_settings=QueueSettings(priority="urgent"))
a20 = Job(command="x", environment="e", identity=Identity(kind="managed"))
a21 = Job(command="x", environment="e", services={"s": Service(type="tensorboard")})
a22 = Job(command="x", environment="e", launcher=TorchRun(nproc=8))
a23 = Job(command="x", environment="e", launcher=PerProcess(processes_per_node="8"))
a24 = Job(command="x", environment="e", launcher=Mpi(processes=8))
a25 = Job(command="x", environment="e", launcher=TensorFlow(workers="two"))
a26 = Job(command="x", environment=Environment(image=1))
a27 = Job(command="x", environment=Environment(build=Build(dockerfile_path="D")))
a28 = Job(command="x", environment="e", code=Code(includes=("a",)))
a29 = Job(command="x", environment="e", locations="westeurope", shm_size=64)
a30 = Component(command="x", environment="e", inputs={"n": Port(type="int")})
a31 = Pipeline(jobs={"a": Step(inputs={"n": 1})})
a32 = Pipeline(jobs=[least])
a33 = Sweep(trial=least, search_space={}, objective="loss", limits=SweepLimits(max_total_trials=1))
a34 = Objective(primary_metric="loss", goal="smaller")
a35 = SweepLimits(max_concurrent_trials=2)
a36 = Schedule(name="n", create_job=least, trigger=Cron(expresion="0 3 * * *"))
