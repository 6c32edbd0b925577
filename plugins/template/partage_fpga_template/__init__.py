"""FPGA boards for partage: a complete plugin for a made-up kind, to copy from."""
