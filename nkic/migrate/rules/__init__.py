"""The rules of a migration, each a function from a node to the node to write, or None."""
