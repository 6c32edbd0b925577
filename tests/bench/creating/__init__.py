"""Making containers on a node with cards, straight at its runtime and through crishim, with requests as kubelet's."""
