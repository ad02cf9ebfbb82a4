"""Statements with another form today: returns, assignments by DMA, statements on too many axes."""
