"""Every rule as a table: arguments → whether it finds something. The mutation test runs the same tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from amlstack.base.pulumi_wire import UNKNOWN, SecretText
from amlstack.catalog import images, sizes


def size(name: str, usd: float | None = None) -> sizes.Size:
    found = sizes.get(name)
    assert found is not None, name
    price = None if usd is None else sizes.Price(usd, "westeurope", date(2026, 7, 1), "made up")
    return replace(found, price_per_hour=price)


TODAY = date(2026, 8, 1)
H100 = size("Standard_ND96isr_H100_v5")
PRICED = size("Standard_ND96isr_H100_v5", 100.0)
NO_IB = size("Standard_ND96is_H100_v5")
CPU = size("Standard_DS3_v2")
HB = size("Standard_HB120rs_v3")
ONE_GPU = size("Standard_NC24ads_A100_v4")
UNDOCUMENTED = replace(CPU, vcpus=None)
SMALL = replace(H100, memory_gib=64.0)
GB200 = size("Standard_ND128isr_NDR_GB200_v6")
MI300X = size("Standard_ND96isr_MI300X_v5")
V100 = size("Standard_ND40rs_v2")
RTX = size("Standard_NC144ds_xl_RTXPRO6000BSE_v6")
ACPT = images.Image("acpt", ("x64",), cuda="12.6", torch="2.10.0+cu126")
CUDA_ALONE = images.Image("tf", ("x64",), cuda="12.6")
MPI_5 = images.Image("base", ("x64",), open_mpi="5.0")
MPI_4 = images.Image("base", ("x64",), open_mpi="4.1.0")
EVERYWHERE = images.Image("multi", ("x64", "arm64"), cuda="12.9", torch="2.10.0+cu129")
CU13 = images.Image("new", ("x64",), cuda="13.0", torch="2.10.0+cu130")
OPENIB = "mpirun --mca btl self,openib python t.py"
AGAIN = "torchrun --max_restarts 3 train.py"
CLOSED = date(2026, 7, 1)
SPOT_SAYS = {"preemptible": True, "nodes": 2}


class Row(NamedTuple):
    """One call: positional arguments, keyword arguments, and what the finding must contain; None for no finding."""

    args: tuple[Any, ...]
    named: dict[str, Any]
    says: str | None
    function: str = "check"


def row(*args: Any, says: str | None, function: str = "check", **named: Any) -> Row:
    return Row(args, named, says, function)


TABLES: dict[str, list[Row]] = {
    "size.fabric": [
        row(size("Standard_NC24r"), nodes=1, on=TODAY, single_node_jobs=True, says="has RDMA without SR-IOV"),
        row(size("Standard_NC96ads_A100_v4"), nodes=2, on=TODAY, says="with 2 nodes"),
        row(size("Standard_NC96ads_A100_v4"), nodes=1, on=TODAY, says=None),
        row(size("Standard_NC96ads_A100_v4"), nodes=2, on=TODAY, single_node_jobs=True, says=None),
        row(H100, nodes=64, on=TODAY, says=None),
        row(CPU, nodes=64, on=TODAY, says=None),
        row(HB, nodes=64, on=TODAY, says=None),
        row(replace(H100, fabric=NO_IB.fabric, gpu_vendor="nobody"), nodes=2, on=TODAY, says="Stay on one node"),
        row(2, cluster="c", single_node_jobs=True, function="check_job", says="wants 2 nodes of the cluster `c`"),
        row(1, cluster="c", single_node_jobs=True, function="check_job", says=None),
        row(2, cluster="c", single_node_jobs=False, function="check_job", says=None),
        row(replace(size("Standard_NC24r"), gpu_vendor="nobody"), nodes=1, on=TODAY, says="over Ethernet. ["),
    ],
    "size.known_size": [
        row("Standard_ND96isr_H100_v5", says=None),
        row("standard_nd96isr_h100_V5", says=None),
        row("Standard_ND96isr_H100", says="Did you mean Standard_ND96isr_H100_v5, "),
        row("Standard_DS3_v", says="Did you mean"),
        row("p4d.24xlarge", says="`amlstack sizes` lists"),
    ],
    "size.retired_size": [
        row(size("Standard_NC24rs_v3"), on=TODAY, says="was retired on 2025-09-30"),
        row(size("Standard_NC24rs_v3"), on=date(2025, 9, 30), says="Use Standard_"),
        row(size("Standard_NC24rs_v3"), on=date(2025, 9, 29), says=None),
        row(H100, on=date(2100, 1, 1), says=None),
        row(replace(size("Standard_NC24rs_v3"), gpu_vendor="nobody"), on=TODAY, says="of a retired size. ["),
    ],
    "size.retiring_size": [
        row(size("Standard_HC44rs"), on=date(2027, 5, 1), days=60, says="in 30 days"),
        row(size("Standard_HC44rs"), on=date(2027, 5, 1), days=30, says="Plan for Standard_"),
        row(size("Standard_HC44rs"), on=date(2027, 5, 1), days=29, says=None),
        row(size("Standard_HC44rs"), on=date(2027, 5, 31), days=60, says=None),
        row(H100, on=date(2100, 1, 1), days=9999, says=None),
        row(replace(size("Standard_HC44rs"), gpu_vendor="nobody"), on=date(2027, 5, 1), days=60, says="60 days. ["),
    ],
    "size.closed_size": [
        row(CPU, on=CLOSED, says="Standard_DS3_v2 is closed to new subscriptions since 2026-07"),
        row(CPU, on=TODAY, says="Use Standard_D4s_v"),
        row(CPU, on=date(2026, 6, 30), says=None),
        row(CPU, on=date(2028, 5, 1), says=None),
        row(size("Standard_HC44rs"), on=TODAY, says=None),
        row(size("Standard_D4s_v5"), on=TODAY, says=None),
        row(size("Standard_NC24rs_v3"), on=TODAY, says=None),
        row(replace(CPU, gpu_vendor="nobody"), on=TODAY, says="and approves no more. ["),
    ],
    "cluster.scale_to_zero": [
        row(0, nodes=0, says=None),
        row(1, nodes=0, says="The minimum is 1 node. At most 0 nodes"),
        row(2, nodes=2, says=None),
        row(3, nodes=2, says="The minimum is 3 nodes"),
    ],
    "cluster.idle_time": [
        row("PT10M", minutes=60, says=None),
        row("PT1H", minutes=60, says=None),
        row("PT61M", minutes=60, says="Idle nodes wait PT61M"),
        row("P1D", minutes=60, says="Write PT60M or less"),
        row(None, minutes=60, says="does not say when"),
        row("soon", minutes=60, says="wait soon"),
    ],
    "cluster.node_ceiling": [
        row(16, nodes=16, says=None),
        row(17, nodes=16, says="The maximum is 17 nodes"),
        row(17, nodes=None, says=None),
        row(1, nodes=0, says="At most 0"),
    ],
    "cost.cluster_budget": [
        row(H100, nodes=8, gpus=64, says=None),
        row(H100, nodes=9, gpus=64, says="9 nodes of Standard_ND96isr_H100_v5 have 72 GPUs"),
        row(H100, nodes=9, gpus=64, vcpus=1, says="Write 8 nodes or less"),
        row(H100, nodes=1, gpus=64, vcpus=95, says="have 96 vCPUs. One cluster may have 95"),
        row(H100, nodes=1, vcpus=96, says=None),
        row(H100, nodes=999, says=None),
        row(CPU, nodes=999, gpus=0, says=None),
        row(UNDOCUMENTED, nodes=999, vcpus=0, says=None),
    ],
    "cost.stack_budget": [
        row([(H100, 8), (CPU, 4)], gpus=64, nodes=12, vcpus=784, says=None),
        row([(H100, 8), (H100, 1)], gpus=64, says="may grow to 72 GPUs"),
        row([(H100, 8), (CPU, 4)], nodes=11, says="may grow to 12 nodes"),
        row([(H100, 8), (CPU, 4)], vcpus=783, says="may grow to 784 vCPUs"),
        row([(UNDOCUMENTED, 8)], vcpus=0, says=None),
        row([(PRICED, 2)], usd_per_hour=200.0, says=None),
        row([(PRICED, 3)], usd_per_hour=200.0, says="may grow to 300 USD per hour"),
        row([(H100, 3)], usd_per_hour=200.0, says="no price of Standard_ND96isr_H100_v5"),
        row([(H100, 3)], gpus=64, says=None),
        row([(PRICED, 3)], says=None),
        row([], gpus=0, usd_per_hour=0.0, says=None),
    ],
    "cost.hourly_cost": [
        row(PRICED, nodes=5, usd=500, says=None),
        row(PRICED, nodes=6, usd=500, says="cost 600.00 USD per hour (westeurope)"),
        row(PRICED, nodes=6, usd=499, says="Write 4 nodes or less"),
        row(PRICED, nodes=6, usd=None, says=None),
        row(H100, nodes=6, usd=1, says="no price of"),
        row(H100, nodes=6, usd=None, says=None),
        row(PRICED, nodes=1, usd=0, says="At most 0.00 USD"),
    ],
    "cost.job_cost": [
        row(PRICED, nodes=2, timeout=3600, usd=200, says=None),
        row(PRICED, nodes=2, timeout=3601, usd=200, says="cost 200.06 USD until the timeout"),
        row(PRICED, nodes=2, timeout=None, usd=200, says="nothing ends the job"),
        row(PRICED, nodes=2, timeout=None, usd=100, says="a timeout of 30 minutes or less"),
        row(PRICED, nodes=2, timeout=None, usd=None, says=None),
        row(H100, nodes=2, timeout=None, usd=100, says="no price of"),
        row(H100, nodes=2, timeout=None, usd=None, says=None),
        row(replace(PRICED, price_per_hour=replace(PRICED.price_per_hour, usd=0.0)),  # type: ignore[type-var]
            nodes=2, timeout=None, usd=1, says="a timeout of 0 minutes"),
    ],
    "resource.region": [
        row("westeurope", regions=["westeurope"], says=None),
        row("West Europe", regions=["westeurope"], says=None),
        row("westeurope", regions=["eastus", "West Europe"], says=None),
        row("southindia", regions=["westeurope"], says="The location is 'southindia'"),
        row("global", regions=["westeurope"], says=None),
        row("southindia", regions=[], says=None),
        row("southindia", regions=None, says=None),
    ],
    "resource.required_tags": [
        row({"team": "a"}, required=["team"], says=None),
        row({"Team": "a"}, required=["team"], says=None),
        row({"team": "a"}, required=["TEAM"], says=None),
        row({"team": UNKNOWN}, required=["team"], says=None),
        row({"team": " "}, required=["team"], says="Missing: team"),
        row({"team": None}, required=["team"], says="Missing: team"),
        row({}, required=["team", "owner"], says="Missing: team, owner"),
        row({}, required=["team"], values={"team": "a"}, says="Write team: a"),
        row({}, required=["team", "owner"], values={"owner": "b"}, says="Write owner: b. ["),
        row({}, required=["team"], values={"owner": "b"}, says="Write them, with a value"),
        row({}, required=None, says=None),
        row({}, required=[], says=None),
    ],
    "cluster.public_ip": [
        row(False, says=None),
        row(True, says="Nodes get public addresses"),
        row(None, says="does not switch public addresses off"),
    ],
    "cluster.ssh": [
        row("Disabled", says=None),
        row("disabled", says=None),
        row("Enabled", says="Remote login is Enabled"),
        row("NotSpecified", says="Remote login is NotSpecified"),
        row(None, says="Remote login is not specified"),
    ],
    "cluster.local_auth": [
        row(True, says=None),
        row(False, says="Local authentication is on"),
        row(None, says="does not switch local authentication off"),
    ],
    "cluster.managed_identity": [
        row("SystemAssigned", says=None),
        row("SystemAssigned,UserAssigned", says=None),
        row("None", says="has no managed identity"),
        row(None, says="has no managed identity"),
    ],
    "cluster.subnet_present": [
        row("/subscriptions/s/…/subnets/n", says=None),
        row("", says="names no subnet"),
        row(None, says="names no subnet"),
    ],
    "cluster.subnet_overlap": [
        row(H100, prefixes=["10.0.0.0/16"], says=None),
        row(H100, prefixes=["10.0.0.0/16", "172.16.4.0/24"], says="The network uses 172.16.4.0/24. "),
        row(H100, prefixes=["172.16.0.0/12"], says="uses 172.16.0.0/12"),
        row(H100, prefixes=["172.17.0.0/16"], says=None),
        row(H100, prefixes=["172.16.0.5/24"], says="uses 172.16.0.5/24"),
        row(H100, prefixes=["::/0", "[parameters('x')]"], says=None),
        row(H100, prefixes=[], says=None),
        row(HB, prefixes=["172.16.0.0/16"], says="addressed from 172.16.0.0/16"),
        row(NO_IB, prefixes=["172.16.0.0/16"], says=None),
    ],
    "job.environment_source": [
        row("azureml://registries/azureml/environments/a/versions/1", registries=["azureml"], says=None),
        row("azureml://registries/AzureML/environments/a/versions/1", registries=["azureml"], says=None),
        row("azureml://registries/x/environments/a/versions/1", registries=["azureml"], says="comes from x"),
        row("azureml://registries/x/environments/a/versions/1", registries=[], says=None),
        row("azureml://registries/x/environments/a/versions/1", registries=None, says=None),
        row("azureml:AzureML-acpt@latest", registries=["mine"], says="The environment comes from azureml"),
        row("azureml:mine:1", registries=["azureml"], says=None),
        row("mcr.microsoft.com/a:1", images=["mcr.microsoft.com"], function="check_image", says=None),
        row("pytorch/pytorch:2", images=["mcr.microsoft.com"], function="check_image", says="comes from docker.io"),
        row("ubuntu", images=["mcr.microsoft.com"], function="check_image", says="The image comes from docker.io"),
        row("my.registry", images=["my.registry"], function="check_image", says="comes from docker.io"),
        row("localhost/a", images=["docker.io"], function="check_image", says="comes from localhost"),
        row("host:5000/a", images=["docker.io"], function="check_image", says="comes from host:5000"),
        row("ghcr.io/a/b:1", images=["docker.io", "MCR.microsoft.com"], function="check_image", says="from ghcr.io"),
        row("ghcr.io/a/b:1", images=None, function="check_image", says=None),
    ],
    "job.environment_pin": [
        row("azureml://registries/azureml/environments/a/versions/7", says=None),
        row("azureml://registries/azureml/environments/a/labels/latest", says="labels/latest"),
        row("azureml:mine:3", says=None),
        row("azureml:mine@latest", says="The environment is azureml:mine@latest"),
        row("azureml:mine", says="The environment is azureml:mine"),
        row("/subscriptions/s/workspaces/w/environments/e/versions/3", says=None),
        row("azureml:a/versions/3@x", says="named by its version"),
        row("mcr.microsoft.com/a:20260701", function="check_image", says=None),
        row("mcr.microsoft.com/a:latest", function="check_image", says="The image is mcr"),
        row("mcr.microsoft.com/a:Latest", function="check_image", says="other than latest"),
        row("mcr.microsoft.com/a", function="check_image", says="The image is"),
        row("mcr.microsoft.com/a:", function="check_image", says="The image is"),
        row("host:5000/a", function="check_image", says="The image is"),
        row("a@sha256:" + "0" * 64, function="check_image", says=None),
    ],
    "job.processes": [
        row(8, H100, nodes=2, says=None),
        row(1, H100, nodes=2, says=None),
        row(9, H100, nodes=2, says="9 processes per node, and Standard_ND96isr_H100_v5 has 8 GPUs. Process"),
        row(16, H100, nodes=2, says="16 is 2 nodes of 8: a total"),
        row(16, H100, nodes=3, says="has 8 GPUs. Process"),
        row(2, ONE_GPU, nodes=2, says="a total"),
        row(2, ONE_GPU, nodes=1, says="has 1 GPUs. Process"),
        row(16, CPU, nodes=2, says=None),
    ],
    "job.gpus_idle": [
        row(8, H100, says=None),
        row(7, H100, says="7 processes per node"),
        row(2, H100, says="Write 8"),
        row(1, H100, says=None),
        row(16, H100, says=None),
        row(4, CPU, says=None),
    ],
    "job.shared_memory": [
        row("64g", H100, gib_per_gpu=8, says=None),
        row("63g", H100, gib_per_gpu=8, says="has 63g of shared memory, for 8 GPUs"),
        row(None, H100, gib_per_gpu=8, says="has 2g of shared memory, the default, for 8 GPUs"),
        row(None, H100, gib_per_gpu=0.25, says=None),
        row(None, H100, docker_args="--ipc=host", gib_per_gpu=8, says=None),
        row(None, H100, docker_args="--shm-size 64g", gib_per_gpu=8, says=None),
        row(None, H100, docker_args="--cap-add X", gib_per_gpu=8, says="Write 950g"),
        row("32g", SMALL, gib_per_gpu=8, says=None),
        row("31g", SMALL, gib_per_gpu=8, says="31g"),
        row("63g", replace(H100, memory_gib=None), gib_per_gpu=8, says="Write 64g"),
        row("65536m", H100, gib_per_gpu=8, says=None),
        row("1t", H100, gib_per_gpu=8, says=None),
        row("68719476736", H100, gib_per_gpu=8, says=None),
        row("68719476736b", H100, gib_per_gpu=8, says=None),
        row("67108864k", H100, gib_per_gpu=8, says=None),
        row("65536k", H100, gib_per_gpu=8, says="65536k"),
        row("lots", H100, gib_per_gpu=8, says=None),
        row(None, CPU, gib_per_gpu=8, says=None),
    ],
    "job.fabric_off": [
        row({"NCCL_IB_DISABLE": "1"}, H100, nodes=2, says="environment_variables.NCCL_IB_DISABLE: `NCCL_IB_DISABLE=1`"),
        row({"NCCL_IB_DISABLE": 1}, H100, nodes=2, says="off the InfiniBand"),
        row({"NCCL_IB_DISABLE": "0"}, H100, nodes=2, says=None),
        row({"NCCL_IB_DISABLE": "1"}, H100, nodes=1, says=None),
        row({"NCCL_IB_DISABLE": "1"}, NO_IB, nodes=2, says=None),
        row({"NCCL_IB_DISABLE": "1"}, HB, nodes=2, says=None),
        row({"NCCL_NET": "Socket"}, H100, nodes=2, says="`NCCL_NET=Socket`"),
        row({"NCCL_NET": "IB"}, H100, nodes=2, says=None),
        row({"NCCL_IB_HCA": "^mlx5"}, H100, nodes=2, says="NCCL_IB_HCA"),
        row({"NCCL_IB_HCA": "mlx5_ib"}, H100, nodes=2, says=None),
        row({"NCCL_P2P_DISABLE": "1"}, H100, nodes=1, says="off the NVLink"),
        row({}, H100, nodes=2, command="NCCL_IB_DISABLE=1 python t.py", says="command: `NCCL_IB_DISABLE=1`"),
        row({}, H100, nodes=2, command="export NCCL_NET='Socket'; python t.py", says="NCCL_NET=Socket"),
        row({}, H100, nodes=2, command='mpirun -x NCCL_NET="Socket" python t.py', says="NCCL_NET=Socket"),
        row({}, H100, nodes=1, command="NCCL_P2P_DISABLE=1 python t.py", says="NVLink"),
        row({}, H100, nodes=2, command="echo MY_NCCL_NET=Socket", says=None),
        row({}, H100, nodes=2, command="NCCL_NET_GDR_LEVEL=5 NCCL_DEBUG=INFO python t.py", says=None),
        row({}, H100, nodes=2, docker_args="--ipc=host -e NCCL_IB_DISABLE=true", says="docker_args: `NCCL_IB_DISABLE"),
        row({}, H100, nodes=2, says=None),
        row({"NCCL_IB_DISABLE": "1"}, None, nodes=2, says="`NCCL_IB_DISABLE=1` on 2 nodes of a size that is not known"),
        row({"NCCL_IB_DISABLE": "1"}, None, nodes=2, says="off InfiniBand, which work across nodes needs"),
        row({"NCCL_IB_DISABLE": "1"}, None, nodes=1, says=None),
        row({"NCCL_P2P_DISABLE": "1"}, None, nodes=2, says=None),
        row({}, None, nodes=2, command="NCCL_NET=Socket python t.py", says="command: `NCCL_NET=Socket`"),
    ],
    "job.spot_checkpoint": [
        row([], **SPOT_SAYS, says="2 low-priority nodes, and no output is mounted"),
        row(["Upload"], **SPOT_SAYS, says="no output is mounted"),
        row(["Upload", "ReadWriteMount"], **SPOT_SAYS, says=None),
        row(["rw_mount"], **SPOT_SAYS, says=None),
        row([None], **SPOT_SAYS, says=None),
        row([], preemptible=False, nodes=2, says=None),
        row([], preemptible=True, nodes=1, says=None),
    ],
    "job.restart_checkpoint": [
        row(AGAIN, says="command: The job asks for 3 restarts, and nothing in it names a checkpoint or an output"),
        row("torchrun --max-restarts=1 train.py", says="asks for 1 restarts"),
        row("torchrun --max_restarts 0 train.py", says=None),
        row("torchrun train.py", says=None),
        row(AGAIN, outputs=1, says=None),
        row(f"{AGAIN} --resume last", says=None),
        row(f"{AGAIN} --ckpt-dir x", says=None),
        row(AGAIN, names=["CHECKPOINT_DIR"], says=None),
        row(AGAIN, names=["DATA"], says="asks for 3"),
        row("python t.py", preemptible=True, timeout=6 * 3600, says="may run 6 h on low-priority nodes"),
        row("python t.py", preemptible=True, timeout=6 * 3600 - 1, says=None),
        row("python t.py", preemptible=True, timeout=3600, hours=1, says="may run 1 h"),
        row("python t.py", preemptible=True, timeout=6 * 3600, nodes=2, says=None),
        row("python t.py", preemptible=True, says=None),
        row("python t.py", preemptible=True, hours=0, says="may run 0 h"),
        row("python t.py", preemptible=False, timeout=6 * 3600, says=None),
    ],
    "job.image_runs": [
        row(ACPT, H100, says=None),
        row(ACPT, None, says=None),
        row(ACPT, GB200, says="environment: acpt is built for x64, and Standard_ND128isr_NDR_GB200_v6 is arm64"),
        row(EVERYWHERE, GB200, says=None),
        row(ACPT, RTX, says="acpt has PyTorch 2.10.0+cu126 for CUDA 12.6, and Standard_NC144ds"),
        row(ACPT, RTX, says="(compute capability 12.0: CUDA 12.8 or later)"),
        row(ACPT, V100, says=None),
        row(CU13, V100, says="(compute capability 7.0: CUDA 9.0 to 12.9)"),
        row(CUDA_ALONE, RTX, says=None),
        row(CUDA_ALONE, MI300X, says="tf is built for CUDA, and Standard_ND96isr_MI300X_v5 has MI300X GPUs of AMD"),
        row(MPI_5, MI300X, says=None),
        row(ACPT, HB, says=None),
        row(MPI_5, HB, command=OPENIB, says="`btl self,openib` with base, which has Open MPI 5.0"),
        row(MPI_5, None, command="mpirun -mca btl_openib_if_include mlx5 x", says="`btl_openib_if_include` with base"),
        row(MPI_5, HB, command="mpirun --mca btl self,tcp x", says=None),
        row(MPI_5, HB, variables={"OMPI_MCA_btl": "^openib"}, says="`OMPI_MCA_btl=^openib`"),
        row(MPI_5, HB, variables={"OMPI_MCA_btl_openib_x": "1"}, says="`OMPI_MCA_btl_openib_x=1`"),
        row(MPI_5, HB, variables={"OMPI_MCA_btl": "self,tcp", "OTHER": "openib"}, says=None),
        row(MPI_4, HB, command=OPENIB, says=None),
        row(ACPT, HB, command=OPENIB, says=None),
    ],
    "job.nebula_gone": [
        row("pip install nebulaml && python t.py", says="command: The command names `nebulaml`"),
        row("python -c 'import torch_nebula'", says="names `torch_nebula`"),
        row("python nebula.py --nebulaml-free my-nebulaml", says=None),
        row("pip: [nebulaml]", what="The conda file", where="conda", says="conda: The conda file names"),
        row("import os\nimport nebulaml as nm\n", name="t.py", function="check_file", says="`t.py` imports `nebulaml`"),
        row("    from torch_nebula import x", name="t.py", function="check_file", says="imports `torch_nebula`"),
        row("# import nebulaml", name="t.py", function="check_file", says=None),
        row('{"nebula": {"enabled": true}}', name="d.json", function="check_file", says="`d.json` has `nebula`"),
        row('{"nebula": {"enabled": false}}', name="ds.json", function="check_file", says=None),
        row('{"nebula": {"enabled": true}}', name="t.py", function="check_file", says=None),
        row("import nebulaml", name="ds.json", function="check_file", says=None),
    ],
    "job.job_timeout": [
        row(3600, says=None),
        row(None, says="The job has no timeout"),
        row(0, says="Write limits.timeout, such as PT12H"),
        row(3600, hours=1, says=None),
        row(3601, hours=1, says="Write 1 hours or less"),
        row(None, hours=1, says="has no timeout"),
    ],
    "job.secret": [
        row({"environmentVariables": {"HF_TOKEN": "hf_" + "a" * 34}}, where="job",
            says="job.environmentVariables.HF_TOKEN: `HF_TOKEN` holds what looks like a Hugging Face token"),
        row({"environmentVariables": {"WANDB_API_KEY": "0a1b2c3d4e"}}, where="job",
            says="`WANDB_API_KEY` is named like a secret, and has a value"),
        row({"inputs": {"api_key": {"jobInputType": "literal", "value": "0a1b2c3d4e"}}}, where="job",
            says="job.inputs.api_key: `api_key` is named like a secret"),
        row({"inputs": {"d": {"uri": "https://a/c?sig=" + "A" * 40}}}, where="job",
            says="job.inputs.d: `d` holds what looks like a signed URL"),
        row({"command": "python t.py --api-key 0a1b2c3d4e"}, where="job",
            says="job.command: `--api-key` is named like a secret, and is set here"),
        row({"resources": {"dockerArgsList": ["-e", "DB_PASSWORD=hunter2"]}}, where="job",
            says="job.resources.dockerArgsList.1: `DB_PASSWORD` is named"),
        row({"jobs": {"a": {"environment_variables": {"CLIENT_SECRET": "0a1b2c3d4e"}}}}, where="job",
            says="job.jobs.a.environment_variables.CLIENT_SECRET"),
        row({"environmentVariables": {"MAX_TOKENS": "100000000000000000", "N": 1, "T": None}}, where="job", says=None),
        row({"command": "python t.py --lr 0.1"}, where="job", says=None),
        row("text", where="job", says=None),
        row({"environmentVariables": {"API_KEY": SecretText("0a1b2c3d4e")}}, where="job", says=None),
        row({"environmentVariables": {"API_KEY": {"secret": "0a1b2c3d4e"}}}, where="job", says=None),
        row({"jobs": {"a": {"environment_variables": {"API_KEY": {"secret": "0a1b2c3d4e"}}}}}, where="job", says=None),
        row({"environmentVariables": {"API_KEY": {"secret": "0a1b2c3d4e", "more": "1"}}}, where="job",
            says="job.environmentVariables.API_KEY.secret"),
        row({"environmentVariables": ["DB_PASSWORD=hunter2"]}, where="job", says="job.environmentVariables.0"),
        row({"tags": {"secret": "0a1b2c3d4e"}}, where="job", says="job.tags.secret"),
        row({"services": {"x": {"secret": "0a1b2c3d4e"}}}, where="job", says="job.services.x.secret"),
    ],
}  # fmt: skip
