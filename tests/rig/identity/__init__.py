"""Who is who in a rig: certificates, keys, tokens, kubeconfigs and what each identity may do."""
