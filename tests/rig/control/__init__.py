"""The control plane of a rig: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, as they are released."""
