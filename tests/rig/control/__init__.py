"""The control plane of a rig: released etcd, kube-apiserver, kube-controller-manager and kube-scheduler."""
