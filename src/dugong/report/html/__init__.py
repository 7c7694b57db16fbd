"""A report as one self-contained page: no network, no library, for eyes, keyboards and screen readers."""
