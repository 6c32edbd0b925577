"""A cluster with one hostile user and one hostile container, beside innocent ones: their actions, and the verdicts."""
