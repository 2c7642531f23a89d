"""Experiments that check in numbers the errors that Zhou and Chowdhury (ICLR 2024) find in FedUCB."""
