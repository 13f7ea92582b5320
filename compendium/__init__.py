"""The machinery: frame, asking, studies, reader."""
