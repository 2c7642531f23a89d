"""Mechanisms, one in each file: objects that randomise releases and return the privacy events to account for."""
