"""Linear contextual bandits: rewards are linear in the contexts that agents are offered."""
