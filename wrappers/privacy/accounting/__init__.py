"""Accounts of what releases have told: events, how they compose, and what that makes in epsilon."""
