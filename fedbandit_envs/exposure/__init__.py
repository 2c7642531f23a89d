"""Exposure fairness: agents are to divide their pulls among arms in proportion to the arms' merits."""
