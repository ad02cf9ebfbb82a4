"""Views of a run as text, tables and traces, for people and for their tools."""
