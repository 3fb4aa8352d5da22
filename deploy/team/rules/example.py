# Rules of this repository. They judge at `amlstack check`, in each preview and in `up`, beside those of amlstack, and
# policies.json configures both: levels, settings, exceptions. docs/reference/policies.md says what a function gets.
# Without the `# ` before each line, this rule counts:
#
# from policies.checks import Setting, rule
#
# NODES = Setting("nodes", "integer", "Most nodes of a cluster.", 8)
#
#
# @rule("team-nodes", "Clusters of this team are small.", "cluster", settings=(NODES,))
# def small(cluster, settings, known):
#     most = cluster.facts.number("most") or 0
#     if most > settings["nodes"]:
#         return f"The cluster grows to {most} nodes", f"Write {settings['nodes']} or less", "most"
