"""FedUCB as Zhou and Chowdhury (ICLR 2024) criticise it."""
