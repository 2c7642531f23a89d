"""Experiments on FedLinUCB and Async-LinUCB, asynchronous federated linear bandits (He et al., NeurIPS 2022)."""
