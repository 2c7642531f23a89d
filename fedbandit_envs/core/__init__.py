"""The federated environment: problems, wrappers, the release ledger, and the specification given to policies."""
