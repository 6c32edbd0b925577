"""Files and folders: rows of the ledger, specifications of containers, their folders, pages and locks."""
