"""FairX-LinUCB: exposure fairness (thesis, chapter 6)."""
