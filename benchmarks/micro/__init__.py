"""Single kernels against the floor, by pytest-benchmark: `make bench-micro`."""
