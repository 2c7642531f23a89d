"""FedLinUCB and Async-LinUCB (He et al., NeurIPS 2022)."""
