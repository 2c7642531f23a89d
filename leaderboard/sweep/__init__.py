"""Many runs, split into shards that are played side by side, kept, and put together again."""
