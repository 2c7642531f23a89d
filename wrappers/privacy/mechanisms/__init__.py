"""Mechanisms, one a file: objects that randomise releases and return the privacy events that each of them spends."""
