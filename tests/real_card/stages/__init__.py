"""Programs that start a broker and containers for their question; they run in our own interpreter."""
