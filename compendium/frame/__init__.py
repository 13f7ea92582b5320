"""From a params key to a verified cell: chain, run, execute, page, cells, verdict, archive, tables, style."""
