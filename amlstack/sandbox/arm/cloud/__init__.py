"""The cloud as its clients find it: its addresses and its tenant, and a subscription as a whole."""
