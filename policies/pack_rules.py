"""Rules on the judgement itself: what waits, what was excepted, how old the catalogue is."""

from __future__ import annotations

from policies.checks import Rule, Setting

CHECKED_AT_UP = Rule(
    code="checked-at-up",
    title="What the preview cannot know is checked when it is known.",
    what=(
        "Names, as advice, every rule that could not judge a resource yet, and the value that was missing. It never "
        "refuses: during `pulumi up` the value is known, and the rule judges the resource before it is created. A "
        "value that Azure resolves only when the job runs is named the same way."
    ),
    why="A rule that passes what it could not see looks exactly like a rule that was satisfied.",
    example="""\
clusters:
  - name: train
    size: ${other-stack.size}   # an output that is not known at preview
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND40rs_v2
""",
    level="advisory",
    not_exported="Azure sees every value",
)

TEMPLATE_UNRESOLVED = Rule(
    code="template-unresolved",
    title="What is deployed can be judged before it is deployed.",
    what=(
        "Refuses an ARM template in which a mandatory rule cannot be judged: a value is an expression that is not "
        "worked out from the parameters, defaults, variables and turns of a resource's `copy` beside it, or the "
        "template is kept elsewhere (`templateLink`, a managed application, a blueprint's assignment). A template that "
        "is only kept for others to deploy is judged by its own values too. Refuses any resource that names something "
        "twice in one object, as Azure reads names without letter case, and one that keeps a size in a form that "
        "cannot be read. The finding names the value and the reason. Where only advisory rules are open, "
        "[checked-at-up](#checked-at-up) says so, and a value that the engine knows at `up` is judged then."
    ),
    why=(
        "What a template deploys is not judged again after the pack: a size that comes in through an expression would "
        "pass every rule."
    ),
    example="""\
# azure-native:resources:Deployment
properties:
  mode: Incremental
  template:
    parameters: {size: {type: string}}
    resources:
      - type: Microsoft.MachineLearningServices/workspaces/computes
        name: workspace/train
        properties:
          computeType: AmlCompute
          properties:
            vmSize: "[parameters('size')]"   # nothing gives it a value
            scaleSettings: {minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: PT10M}
""",
    instead="""\
# azure-native:resources:Deployment
properties:
  mode: Incremental
  parameters: {size: {value: Standard_ND96isr_H100_v5}}
  template:
    parameters: {size: {type: string}}
    resources:
      - type: Microsoft.MachineLearningServices/workspaces/computes
        name: workspace/train
        properties:
          computeType: AmlCompute
          properties:
            vmSize: "[parameters('size')]"
            scaleSettings: {minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: PT10M}
""",
    options=(
        "None. A team that deploys templates from elsewhere sets the rule to `advisory`, or grants an exception for "
        "the resource."
    ),
    not_exported="Azure sees what a template deploys, with every value",
)

EXCEPTION_EXPIRED = Rule(
    code="exception-expired",
    title="An exception ends on the day that was agreed.",
    what=(
        "Exceptions are configuration of the pack, not of the workload: each names a rule, the resources (a pattern "
        "over name or URN), an owner, a reason and a day on which it expires. Until then a finding it covers is shown "
        "as advice with its owner and reason. After that day the finding counts again, and the exception itself is a "
        "violation until it is removed or renewed."
    ),
    why="An exception without an end is a hole in the rule that is forgotten a year later.",
    example="""\
exception-expired:
  exceptions:
    - rule: size-retired
      resource: legacy-*
      owner: vision
      reason: The old cluster is drained until August.
      expires: 2026-07-31
""",
    instead="""\
exception-expired:
  exceptions:
    - rule: size-retired
      resource: legacy-*
      owner: vision
      reason: The old cluster is drained until September.
      expires: 2026-09-30
""",
    options="The list `exceptions`, each entry with `rule`, `resource`, `owner`, `reason` and `expires` (a day).",
    not_exported="Azure has exemptions of its own",
)

CATALOGUE_OLD = Rule(
    code="catalogue-old",
    title="The pack knows the retirements of today.",
    what=(
        "Says, once per stack, that the pack is older than it should be: when the newest retirement that its catalogue "
        "knows of has passed, or when the catalogue was last held against its sources too many days ago."
    ),
    why="A pack that was pinned and forgotten lets sizes through that Azure retired after it was built.",
    example="""\
catalogue-old: {days: 1}
""",
    instead="""\
catalogue-old: {days: 365}
""",
    level="advisory",
    settings=(Setting("days", "integer", "Days that the catalogue may be old.", 365),),
    not_exported="it is about the pack",
)

META: tuple[Rule, ...] = (CHECKED_AT_UP, TEMPLATE_UNRESOLVED, EXCEPTION_EXPIRED, CATALOGUE_OLD)
