"""What tests that share a rig leave on it: what there is before a test and after it is compared."""
