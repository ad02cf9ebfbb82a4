"""The executable file: its records, and their conversion to and from bytes.

`records` defines the contents of a file; `encode` and `decode` implement the format of docs/neff.md
in a `container`; `verify` proves that a file cannot make the runner misbehave; `read` loads and
verifies one, or describes it. `disassemble` is the text form, which `assemble` reads, and compares
programs. `pace` computes a program's time, `events` are those of a run, `arrays` are a kernel's
data.
"""
