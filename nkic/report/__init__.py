"""Reports on compiled kernels and on runs: texts, tables, pictures, traces, the HTML page."""
