"""Linear bandits with fixed features: each agent's arms keep their contexts, so that an arm is the same in all rounds."""
