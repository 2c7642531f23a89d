"""An experiment on spending one privacy budget: the number of releases, their times and their shares."""
