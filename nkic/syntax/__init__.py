"""The syntax tree: its nodes (`nodes`) and its traversal (`walk`)."""
