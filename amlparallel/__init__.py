"""The driver of a parallel step on its nodes, copied beside the step's code as ``driver/amlparallel``.

``python -m amlparallel`` runs once on each node, in the Python of the step's environment. The first node splits the
input into mini-batches and gives them out; each node starts worker processes, which call the entry script's ``init()``
once and ``run(mini_batch)`` for each mini-batch they get. Standard library only; pandas where the input is a table.
"""
