"""What an environment declares, read into a stand-in: conda files, pip's requirement files, Dockerfiles.

No file of an environment is run and nothing is fetched: text becomes requirements, and what cannot become one is named
with its consequence.
"""
