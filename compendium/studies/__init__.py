"""What belongs to one study alone: loading its archive by meaning, and its own vocabulary."""
