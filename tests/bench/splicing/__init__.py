"""Parts of `bench/crishim.py`: a client and a relay in Go, and processes to compare."""
