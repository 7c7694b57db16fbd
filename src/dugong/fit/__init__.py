"""From sums to parameters: closed forms, EM, learned structure."""
