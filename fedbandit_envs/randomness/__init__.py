"""Counter-based random numbers: one stream a replica and purpose."""
