"""Settings in ``Pulumi.<stack>.yaml``, namespace ``amlstack:``.

The field descriptions are the reference documentation; docs/reference/settings.md is made from them.
"""
