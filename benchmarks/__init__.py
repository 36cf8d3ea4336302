"""How fast skillshelf is, against floors that no library can beat and against other libraries. `run` is the way in."""
