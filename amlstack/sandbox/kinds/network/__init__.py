"""Microsoft.Network: virtual networks, security groups, private endpoints and private DNS zones."""
