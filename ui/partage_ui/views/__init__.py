"""What people see: a title, a sentence and a table for each question. Pure.

`catalogue` has all views by their paths; `parts` are the tables, bars and pages of which they are made.
"""
