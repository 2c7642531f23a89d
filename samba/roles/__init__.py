"""The roles of SAMBA, as state machines: each takes in messages and returns the messages that answer them."""
