"""Privacy accounting: events, their composition, and calibration of noise."""
