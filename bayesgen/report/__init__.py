"""A report on a table of one's own: the command ``bayesgen compare``."""
