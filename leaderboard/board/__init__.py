"""The leaderboard: suites that are played, tracks that results compete on, and records that can be repeated."""
