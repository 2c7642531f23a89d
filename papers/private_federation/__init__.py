"""Whether private federation pays against tuned silence."""
