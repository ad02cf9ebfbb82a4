"""The language server, played by a client over standard input and output."""
