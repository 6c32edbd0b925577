"""What `bench/simgpu.py` is made of: undisturbed runs, and processes that take and give back memory."""
