"""Jobs as the settings say them: name → inputs of `JobResource`, with ``after`` for what it waits for."""

import pulumi

from amlstack.resources import EnvironmentVersionResource, JobResource, SnapshotResource, StackRecord

config = pulumi.Config()
workspace = config.require("workspace")
first: list[pulumi.Resource] = []
if folder := config.get("code"):
    snapshot = SnapshotResource("code", workspace=workspace, path=folder)
    pulumi.export("codeId", snapshot.code_id)
    first.append(snapshot)
if image := config.get("image"):
    environment = EnvironmentVersionResource("torch", workspace=workspace, name="torch", body={"image": image})
    pulumi.export("environmentId", environment.environment_id)
    first.append(environment)
stack_id = StackRecord("stack").stack_id if config.get_bool("record") else None
placed_on = None
if ground := config.get("ground"):  # stands for a cluster: another word replaces it, the old one first
    replaced_first = pulumi.ResourceOptions(delete_before_replace=True)
    placed_on = [StackRecord("ground", stack_id=ground, opts=replaced_first).stack_id]
made: dict[str, JobResource] = {}
for name, inputs in (config.get_object("jobs") or {}).items():
    after = inputs.pop("after", None)
    needs = [*first, *([made[after]] if after else [])]
    opts = pulumi.ResourceOptions(depends_on=needs)
    more = {"workspace": workspace, "stack_id": stack_id, "placed_on": placed_on, "opts": opts}
    made[name] = JobResource(name, name=name, **more, **inputs)
    pulumi.export(name, {"id": made[name].job_id, "status": made[name].status, "gone": made[name].gone})
