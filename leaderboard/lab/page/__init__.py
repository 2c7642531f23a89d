"""The page of the lab that needs no Python: curves played beforehand, to choose among."""
