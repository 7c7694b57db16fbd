"""What `make bench` runs: this project against its peers, its floors, how its cost grows, and how good its labels are."""
