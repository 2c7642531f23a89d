"""What is played and what comes of it: runs, sweeps, reproductions, the board, the lab and the command line."""
