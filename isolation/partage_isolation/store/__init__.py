"""What lies in files and folders: rows of the ledger, specs of containers, their folders, pages and locks."""
