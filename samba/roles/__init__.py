"""The roles of SAMBA, as state machines: each is given messages and returns the messages that it sends in answer."""
