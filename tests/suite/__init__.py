"""The runner of `make check` and `make test`: a plan of jobs, a pool that runs them in parallel, and a report."""
