"""The leaderboard: suites, tracks, entries and their results."""
