"""What `bench/crishim.py` is made of: a client and a relay in Go, and processes to compare."""
