"""Tests of the advice in messages: what help lines say is done, and compiled again."""
