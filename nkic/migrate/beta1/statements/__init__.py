"""Statements that are others today: returns, assignments by DMA, those on too many axes."""
