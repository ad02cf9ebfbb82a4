"""Text → tree → names: `parse` makes the tree by grammar/nki.lark, `resolve` the names."""
