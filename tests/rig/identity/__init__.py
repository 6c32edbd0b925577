"""The identities of a rig: certificates, keys, tokens, kubeconfigs and permissions."""
