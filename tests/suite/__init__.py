"""What `make check` and `make test` run: a plan of jobs, a pool that runs them side by side, and a report."""
