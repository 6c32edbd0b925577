"""Compares the real kube-scheduler with ours: on which nodes of random clusters does a pod fit.

`made` generates clusters that an API server accepts, `recording` is an extender that records kube-scheduler's answers,
`comparing` compares both.
"""
