"""Answers to the requests that providers send before the first delivery."""
