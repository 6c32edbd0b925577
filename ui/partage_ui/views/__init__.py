"""What users see: a title, a sentence and a table for each question. Pure.

`catalogue` has all views by path; `parts` has the tables, bars and pages that they are made of.
"""
