"""Exposure fairness: agents share pulls out among arms, in proportion to what arms merit."""
