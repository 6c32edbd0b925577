"""What an extender costs a real kube-scheduler; `racing.raced` is for other benches too."""
