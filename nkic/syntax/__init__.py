"""The syntax tree: its nodes (`nodes`) and how to walk them (`walk`)."""
