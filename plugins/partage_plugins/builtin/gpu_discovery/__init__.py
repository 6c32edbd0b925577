"""Finds the node's cards and says how they are: the advertiser's half of the plugin for the kind `gpu`."""
