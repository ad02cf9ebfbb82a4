"""`nkic --migrate`: a kernel's source from one version of NKI to a later one.

The file is text here as everywhere: libcst (an extra, `nkic[migrate]`) reads it, so that comments
and layout stay, and what a rule must know of shapes comes from evaluating the kernel in the closed
world. Where no rule is sure, the source stays as it was, and a diagnostic says why.
"""
