"""An experiment on what trust in others buys: one bandit and one epsilon behind every stage of a transport."""
