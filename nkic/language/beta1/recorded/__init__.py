"""What looks at instructions that Beta 1 has recorded: turns of loops, room in SBUF."""
