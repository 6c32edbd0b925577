"""What plugin authors import."""
