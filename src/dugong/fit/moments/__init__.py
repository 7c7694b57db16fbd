"""Closed forms from moments: `centred` is the default; equations, their staged solution and joint tables serve all."""
