"""One file for each framework that a shelf joins. Each needs the extra of its name."""
