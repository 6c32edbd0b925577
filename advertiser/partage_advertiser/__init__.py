"""Will hold the advertiser: NVML to inventory file and node annotation, written only when something changed."""
