"""The catalogue's facts shown, and renewed from Azure."""
