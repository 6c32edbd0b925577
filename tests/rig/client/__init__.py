"""How tests and the rig itself talk to the API server, as whom they like."""
