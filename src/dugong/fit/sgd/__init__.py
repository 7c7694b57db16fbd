"""The paper's SGD variant (extra `torch`): `fit` is its door."""
