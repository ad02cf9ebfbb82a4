"""The executable file: its records, and their conversion to and from bytes.

`records` defines the contents of a file; `write` and `read` implement the format of docs/neff.md;
`verify` proves that a file cannot make the runner misbehave; `load` reads and verifies. `listing`
is the text form, and compares programs; `info` and `edit` describe files and strip parts of them.
"""
