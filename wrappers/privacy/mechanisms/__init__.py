"""Mechanisms: objects that randomise releases and say what each of them spends, one file a mechanism."""
