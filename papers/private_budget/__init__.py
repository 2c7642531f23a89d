"""An experiment on how to spend a privacy budget: how many releases, in which rounds, and with which shares of it."""
