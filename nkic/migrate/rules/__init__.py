"""The rules of a migration, each a function from a node to the node that replaces it, or None."""
