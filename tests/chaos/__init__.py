"""The chaos suite: crashes, full disks, folders that vanish, two runs at once, and a store that fails."""
