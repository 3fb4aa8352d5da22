"""The report of a run as one HTML file: declaration, verdict, ranks over time, numbers, logs.

`jobs.job_report` and `jobs.folder_report` collect a `content.Report`, `page.render` makes the page of it.
`page.write` keeps the page.
"""
