"""Programs of users, one question each: they know nothing of partage and need nothing but Python 3.10."""
