"""What `bench/simgpu.py` is made of: runs that nobody disturbs, and processes that take and give back memory."""
