"""The paper's SGD variant (extra `torch`): `fit` is its door, `stages` the order of things, the rest one idea each."""
