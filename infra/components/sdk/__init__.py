"""What of Pulumi's SDK this program has otherwise: the words of a registration, and the end after Ctrl-C."""
