"""The files that `dugong init` copies: a project to start from."""
