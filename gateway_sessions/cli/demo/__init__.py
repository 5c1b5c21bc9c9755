"""The scenes of the demo."""
