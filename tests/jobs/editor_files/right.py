"""Uses of the model that are right; a type checker finds nothing in this file. Read by a test, never run."""

from jobs import (
    Accelerate,
    Build,
    Choice,
    Code,
    Component,
    Cron,
    DeepSpeed,
    Environment,
    Horovod,
    Identity,
    Input,
    Job,
    Lightning,
    Limits,
    Mpi,
    Output,
    PerProcess,
    Pipeline,
    Port,
    QueueSettings,
    Schedule,
    Service,
    SingleNode,
    Step,
    Sweep,
    SweepLimits,
    TensorFlow,
    TorchRun,
    Uniform,
)
from jobs import Objective as Goal

least = Job(command="python train.py", environment="acpt-pytorch-2.8-cuda12.6")
folder = Job(command="x", environment="e", code="src", compute="h100", nodes=2, launcher=TorchRun())
listed = Job(command="x", environment="e", code=Code(path="src", includes=("../shared",)))
bound = Job(command="x ${{inputs.lr}}", environment="e", inputs={"lr": 0.1, "n": 3, "on": True, "text": "a"})
data = Job(command="x", environment="e", inputs={"d": Input(path="azureml:d:1", mode="ro_mount")})
written = Job(command="x", environment="e", outputs={"ckpt": "uri_folder", "m": Output(type="mlflow_model")})
longest = Job(command="x", environment="e", limits=Limits(timeout="2h"))
seconds = Job(command="x", environment="e", limits=Limits(timeout=3600))
inline = Job(command="x", environment=Environment(image="i:1", conda_file="conda.yml"))
content = Job(command="x", environment=Environment(image="i:1", conda_file={"dependencies": ["pip"]}))
built = Job(command="x", environment=Environment(build=Build(path="docker")))
variables = Job(command="x", environment="e", environment_variables={"NCCL_DEBUG": "INFO"}, shm_size="64g")
counted = Job(command="x", environment="e", nodes="${{parent.inputs.nodes}}", launcher=PerProcess(processes_per_node=8))
regions = Job(command="x", environment="e", locations=["westeurope"], instance_type="Standard_ND96asr_v4")
docker = Job(command="x", environment="e", docker_args=["--ipc=host"], tags={"team": "a"}, properties={"p": None})
queue = Job(command="x", environment="e", queue_settings=QueueSettings(job_tier="spot", priority="low"))
who = Job(command="x", environment="e", identity=Identity(type="managed", client_id="c"))
shown = Job(command="x", environment="e", services={"board": Service(type="tensor_board", log_dir="logs", nodes="all")})
stack = Job(command="x", environment="e", on_edit="cancel", wait="completed", delete_history=True, rerun="two")
mpi = Job(command="x", environment="e", launcher=Mpi(processes_per_node=8))
horovod = Job(command="x", environment="e", launcher=Horovod())
deepspeed = Job(command="x", environment="e", launcher=DeepSpeed(), enrich=False)
trainer = Job(command="x", environment="e", launcher=Lightning())
accelerate = Job(command="x", environment="e", launcher=Accelerate())
workers = Job(command="x", environment="e", launcher=TensorFlow(workers=2))
single = Job(command="x", environment="e", launcher=SingleNode())
names: dict[str, str | None] = {"team": "a"}
tagged = Job(command="x", environment="e", tags=names, name="n", display_name="N", experiment_name="E")
component = Component(command="x", environment="e", code="src", inputs={"n": Port(type="integer", default=1)})
pipeline = Pipeline(jobs={"a": least, "b": Step(component=component, inputs={"n": 2}, compute="h100")})
trials = SweepLimits(max_total_trials=4, max_concurrent_trials=2, timeout="1h", trial_timeout=600)
goal = Goal(primary_metric="loss", goal="minimize")
sweep = Sweep(
    trial=bound,
    search_space={"lr": Uniform(min_value=0.1, max_value=1.0), "size": Choice(values=(1, 2))},
    objective=goal,
    limits=trials,
    sampling_algorithm="random",
)
nightly = Schedule(name="nightly", create_job=least, trigger=Cron(expression="0 3 * * *"))
