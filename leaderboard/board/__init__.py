"""The leaderboard: suites of tasks, tracks on which entries compete, and records of results that can be verified."""
