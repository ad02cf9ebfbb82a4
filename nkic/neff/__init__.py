"""The executable file: records, and how they become bytes and back.

`records` says what a file holds; `write` and `read` are the format of docs/neff.md; `verify`
proves that a file which was read cannot make the runner misbehave, and `load` does both.
`listing` is the text form and compares programs; `info` and `edit` look at files and take parts
out.
"""
