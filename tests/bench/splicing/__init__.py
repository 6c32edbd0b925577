"""Parts of `bench/crishim.py`: a client and a relay in Go, and the proxy as a process."""
