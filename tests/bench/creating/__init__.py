"""Creates containers on a node with cards, directly and through crishim, with requests like kubelet's."""
