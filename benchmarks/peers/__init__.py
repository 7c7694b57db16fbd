"""One small file per peer: `label(data)` gives P(+1) of every element. Each runs in the peer's own environment."""
