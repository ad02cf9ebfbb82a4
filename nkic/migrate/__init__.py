"""`nkic --migrate`: rewrite a kernel's source from one version of NKI to a later one.

As everywhere, the file is read as text: libcst, an optional dependency, parses it, so that
comments and layout are kept; what a rule must know of shapes comes from evaluating the kernel in
the closed world. Where no rule is certain, the source is left unchanged, and a diagnostic explains
why.
"""
