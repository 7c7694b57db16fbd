"""The studio: a page on this machine that joins raw data, votes, probabilities, rules and corrections.

A server (`app`, guarded by its `door`) shows what the last run left (`snapshot`); code of the user runs in
processes of their own (`bench`), so that whatever it does, the page stays.
``docs/reference/studio.md`` says what both sides say.
"""
