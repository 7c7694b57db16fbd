"""An S3-compatible server on this machine, and what happens when it misbehaves (``make test-store``)."""
