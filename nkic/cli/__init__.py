"""The two commands, `nkic` and `nki-run`, and what they share: options, messages, exit codes."""
