"""advise: follows the advice on a kernel where that is mechanical, and measures each step."""
