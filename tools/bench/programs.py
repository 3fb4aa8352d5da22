"""The programs that the benchmark of registration deploys, as text for `str.format` but for `FLOOR`."""

JOBS = """\
from jobs import Job, Limits, TorchRun

IMAGE = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7"
jobs = [
    Job(
        name=f"j{{i:05}}", command="train.py", code="src", inputs={{"seed": i}}, environment=IMAGE, nodes=2,
        compute=f"c{{i % {clusters}:05}}", launcher=TorchRun(), limits=Limits(timeout=3600),
    )
    for i in range({count})
]
"""
FLOOR = """\
import json
import pulumi

made = {}
for one in json.load(open("resources.json")):
    before = [made[urn] for urn in one["dependencies"] if urn in made]
    made[one["urn"]] = pulumi.CustomResource(
        one["type"], one["name"], one["inputs"], pulumi.ResourceOptions(depends_on=before)
    )
"""
EMPTY = """\
import pulumi
from pulumi.runtime import resource
from pulumi.runtime.proto import source_pb2

resource._get_stack_trace = source_pb2.StackTrace
for i in range({count}):
    pulumi.CustomResource("amlstack:empty:Resource", f"r{{i:05}}", {{}})
"""
PLAIN = """\
import pulumi
from pulumi_azure_native import machinelearningservices as ml, resources

NAMES = {{"resource_group_name": "rg", "workspace_name": "ws-bench"}}
group = resources.ResourceGroup("group", resource_group_name="rg", location="westeurope")
workspace = ml.Workspace("workspace", resource_group_name=group.name, workspace_name="ws-bench", location="westeurope")
behind = pulumi.ResourceOptions(depends_on=[workspace])
clusters = [
    ml.Compute(
        f"c{{i:05}}", compute_name=f"c{{i:05}}", **NAMES, location="westeurope", opts=behind,
        identity=ml.ManagedServiceIdentityArgs(type="SystemAssigned"),
        properties=ml.AmlComputeArgs(
            compute_type="AmlCompute", disable_local_auth=True,
            properties=ml.AmlComputePropertiesArgs(
                vm_size="Standard_ND96isr_H100_v5", vm_priority="Dedicated", os_type="Linux",
                remote_login_port_public_access="Disabled",
                scale_settings=ml.ScaleSettingsArgs(
                    min_node_count=0, max_node_count=2, node_idle_time_before_scale_down="PT10M"
                ),
            ),
        ),
    )
    for i in range({clusters})
]
for i in range({jobs}):
    ml.Job(
        f"j{{i:05}}", id=f"j{{i:05}}", **NAMES, opts=pulumi.ResourceOptions(depends_on=[clusters[i % {clusters}]]),
        properties=ml.CommandJobArgs(
            job_type="Command", command="python train.py --seed ${{{{inputs.seed}}}}",
            compute_id=f"/subscriptions/s/computes/c{{i % {clusters}:05}}",
            code_id="/subscriptions/s/codes/c/versions/1",
            environment_id="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7",
            distribution=ml.PyTorchArgs(distribution_type="PyTorch", process_count_per_instance=8),
            resources=ml.JobResourceConfigurationArgs(instance_count=2, shm_size="950g"),
            inputs={{"seed": ml.LiteralJobInputArgs(job_input_type="literal", value=str(i))}},
            limits=ml.CommandJobLimitsArgs(job_limits_type="Command", timeout="PT1H"),
            environment_variables={{"NCCL_SOCKET_IFNAME": "eth0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}},
        ),
    )
"""
