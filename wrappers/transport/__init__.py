"""Carriers of messages: a channel from agent to agent, a server, and when and to whom they carry."""
