"""The lab: a notebook in the browser that plays what one puts together."""
