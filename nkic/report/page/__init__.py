"""A run as one self-contained HTML page: no network, no other file."""
