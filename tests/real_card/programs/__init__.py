"""Programs of users, one question each: they know nothing of partage and need only Python 3.10."""
