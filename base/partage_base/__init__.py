"""What partage's daemons share and no plugin author needs.

``daemon`` is the life of a process (settings, logs, metrics, readiness, signals); ``cri`` speaks to a container runtime,
``kube`` to the API server. Imports the vocabulary of ``partage_plugins`` and nothing else of ours.
"""
