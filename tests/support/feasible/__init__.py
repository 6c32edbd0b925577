"""Where the real kube-scheduler says that a pod may go, and where we say so, of clusters by chance.

`made` makes clusters that an API server takes, `recording` is the extender by which kube-scheduler tells, `comparing`
puts both against each other.
"""
