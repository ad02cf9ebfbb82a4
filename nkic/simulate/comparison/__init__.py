"""Arrays beside other arrays: how far they are apart, what is tolerated, what they hold."""
