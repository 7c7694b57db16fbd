"""Benchmarks: speed, memory and quality against the peers, the floor and the optimum. `make bench` runs them."""
