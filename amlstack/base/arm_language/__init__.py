"""Azure Resource Manager's languages: expressions of templates, and the rules of Azure Policy that use them.

Nothing here asks Azure. What only Azure knows is `values.OpenError`, never an answer.
"""
