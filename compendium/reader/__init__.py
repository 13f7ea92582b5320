"""What a reader gets of a finished run: the book and the certificate."""
