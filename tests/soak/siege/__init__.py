"""A cluster under one hostile user and one hostile container, beside innocent ones: what they do, and the judgement."""
