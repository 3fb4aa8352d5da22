"""Who wrote a line: its rank, node and process, by what stands before it, by other lines, by the log's layout."""
