"""The skills that come with skillshelf, one subpackage each."""
